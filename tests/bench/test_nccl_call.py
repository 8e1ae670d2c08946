# SPDX-License-Identifier: Apache-2.0
"""What a call of collectives.nccl costs: that it is measured, and held against the goal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import nccl_call


def test_all_ways_are_measured_and_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench.nccl_call", "--blocks", "1", "--output", str(kept)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seconds = json.loads(kept.read_text())["seconds"]
    assert list(seconds) == ["C", "empty", "raw", "persistent", "method, NumPy", "method, GPU"]
    assert all(of_one > 0 for of_one in seconds.values())  # which is less is for a quiet machine
    assert "method, GPU" in done.stdout


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [(0.69e-6, True), (0.72e-6, False), (0.89e-6, False)],
)
def test_the_goal(seconds: float, wanted: bool) -> None:
    found = {"C": 0.0, "empty": 0.2e-6, "raw": seconds}
    assert nccl_call.met(found, "raw") is wanted
    assert nccl_call.met(found | {"empty": 0.3e-6}, "raw")
