# SPDX-License-Identifier: Apache-2.0
"""The main job and its example, shortened; and one case of pytest-benchmark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import collectives as cl
from bench.main_job import gradient_bytes
from examples import digits

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "digits.py"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    # A test run within this one is no part of it.
    outside = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=outside | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.processes
def test_the_main_job(tmp_path: Path) -> None:
    options = ("--epochs", "2", "--budget", "1", "--output", str(tmp_path))
    done = run("-m", "bench.main_job", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"epoch +2 +loss 0\.\d+ +accuracy 9\d\.\d%", done.stdout)
    deviation = re.search(r"30 steps, ranks: 4, .* equalled one rank's to (\S+) ", done.stdout)
    assert deviation is not None
    assert float(deviation[1]) <= 1e-9
    rows = json.loads((tmp_path / "gradients.json").read_text(encoding="utf-8"))["rows"]
    names = {a.name for a in cl.algorithms("allreduce") if a.fits(4)}
    assert {row["algorithm"] for row in rows} == names
    assert {row["size"] for row in rows} == {80, 1024, 10240, 65536} == set(gradient_bytes())
    assert all(row["wrong"] == 0 and row["refused"] is None for row in rows)
    picture = tmp_path / "gradients.png"
    assert str(picture) in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.processes
@pytest.mark.all_cases  # the main job has it with four ranks
@pytest.mark.parametrize("ranks", [1, 3])
def test_the_example_alone_and_under_collrun(ranks: int) -> None:
    launcher = ["-m", "collectives.launch", "-n", str(ranks)] if ranks > 1 else []
    done = run(*launcher, str(EXAMPLE), "--epochs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"15 steps, ranks: {ranks}, " in done.stdout


def test_a_difference_of_weights_ends_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    class Drifting(digits.Descent):
        def step(self, slopes: digits.Weights) -> None:
            slopes[0][0, 0] += drift.pop()
            super().step(slopes)

    drift = [1e-6, 0.0]  # popped from the end: the training alone drifts in its first step
    drift.reverse()
    monkeypatch.setattr(digits, "Descent", Drifting)
    with cl.init() as comm, pytest.raises(SystemExit, match="step 1: weights differ"):
        digits.train(comm, epochs=1)


def test_the_gradient_is_that_of_the_loss() -> None:
    random = np.random.default_rng(3)
    images, labels = random.random((6, digits.PIXELS)), random.integers(0, 10, 6).astype(float)
    weights = digits.initial()
    slopes, _ = digits.gradients(weights, images, labels, 6)
    for layer, slope in enumerate(slopes):
        index = tuple(0 for _ in slope.shape)
        losses = []
        for change in (1e-6, -1e-6):
            moved = [weight.copy() for weight in weights]
            moved[layer][index] += change
            losses.append(digits.gradients(moved, images, labels, 6)[1])
        assert slope[index] == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-4, abs=1e-8)


@pytest.mark.processes
def test_pytest_benchmark(tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    done = run("-m", "pytest", "bench/test_barrier.py", "--benchmark-only", "-q",
               f"--benchmark-json={data}", "-p", "no:cacheprovider")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads(data.read_text(encoding="utf-8"))["benchmarks"]
    assert [case["extra_info"]["ranks"] for case in cases] == [2, 4]
    assert all(case["stats"]["median"] > 0 for case in cases)
