# SPDX-License-Identifier: Apache-2.0
"""Every example runs and shows what it says. (digits.py has a test of its own.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.jobs import COLLRUN, ROOT, environment
from tests.shares import few

EXAMPLES = ROOT / "examples"
PYTHON = (sys.executable,)

# How an example is run, its exit code, and lines that must be in its output.
RUNS: dict[str, tuple[tuple[str, ...], int, list[str]]] = {
    "allreduce.py": (
        (*COLLRUN, "-n", "4"),
        0,
        [f"[{r}] rank {r} of 4: [6. 6. 6.]" for r in range(4)],
    ),
    "all_kinds.py": (
        (*COLLRUN, "-n", "3"),
        0,
        [
            "[1] allreduce      rank 1: [30 33 36]",
            "[2] reduce_scatter rank 2: [36]",
            "[0] allgather      rank 0: [ 0  1  2 10 11 12 20 21 22]",
            "[2] allgatherv     rank 2: [10 20 21]",
            "[0] broadcast      rank 0: [10 11 12]",
            "[1] reduce         rank 1: None",
        ],
    ),
    "threads.py": (PYTHON, 0, [f"rank {rank}: 3.1415926536" for rank in range(4)]),
    "failures.py": (
        (*COLLRUN, "-n", "3"),
        137,
        ["rank 1 calls allreduce of 4", "rank at fault: 1"],
    ),
    "sparse_embedding.py": (
        (*COLLRUN, "-n", "4"),
        0,
        ["[0] all sums are the dense ones, but for rounding", "[0] a rank sent "],
    ),
    "digits_topk.py": ((*COLLRUN, "-n", "2"), 0, ["[0] accuracy with whole gradients "]),
    "algorithms.py": (PYTHON, 0, ["circulant", "8 rounds at p = 16, proved", "round 3  rank 2"]),
}


# What some are given.
ARGUMENTS = {"digits_topk.py": ["--epochs", "1"]}


def test_no_example_is_forgotten() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*RUNS, "digits.py"}


@pytest.mark.processes
@few("name", [*RUNS], [name for name in RUNS if name != "digits_topk.py"])
def test_example_runs(name: str, tmp_path: Path) -> None:
    command, code, lines = RUNS[name]
    arguments = [str(tmp_path)] if name == "algorithms.py" else ARGUMENTS.get(name, [])
    done = subprocess.run(
        [*command, str(EXAMPLES / name), *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    for line in lines:
        assert line in done.stdout
    if name == "algorithms.py":
        drawings = ["circulant.svg", "recursive_halving.svg", "ring.svg"]
        assert sorted(path.name for path in tmp_path.iterdir()) == drawings


@pytest.mark.processes
@pytest.mark.all_cases
@pytest.mark.parametrize("more", [[], ["--of-sum"]])
def test_a_hundredth_of_each_gradient_is_enough(more: list[str]) -> None:
    """With error feedback the accuracy ends at most half a point below that of whole gradients."""
    done = subprocess.run(
        [*COLLRUN, "-n", "4", str(EXAMPLES / "digits_topk.py"), *more],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"whole gradients (\d+\.\d+)%, with 1\.0% of each (\d+\.\d+)%", done.stdout)
    assert found is not None, done.stdout
    whole, some = map(float, found.groups())
    assert whole > 97
    assert some >= whole - 0.5
