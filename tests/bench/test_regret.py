# SPDX-License-Identifier: Apache-2.0
"""The regret bench: its figures, and a small run on real ranks."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.record import ROOT
from bench.regret.__main__ import figures, summary, undecided


def cell(ratio: float, held_out: bool = False, high: float = 1.01) -> dict[str, Any]:
    return {
        "held_out": held_out,
        "tuned": {"ratio": ratio},
        "rule": {"ratio": 2 * ratio},
        "same": {"ratio": 1.0, "low": 0.99, "high": high},
    }


def test_figures() -> None:
    cells = [cell(1.0), cell(1.21), cell(1.5, held_out=True), cell(9.0, high=1.2)]
    assert [undecided(c) for c in cells] == [False, False, False, True]
    found = summary(cells)
    assert (found["undecided"], found["of"]) == (1, 4)
    assert math.isclose(found["tuned"]["mean"], 1.1)
    assert found["tuned"]["max"] == 1.21
    assert found["held out"] == {"cells": 1, "mean": 1.5, "p99": 1.5, "max": 1.5}
    assert found["rule"]["cells"] == 3
    assert figures([], "tuned") == {"cells": 0}


def test_a_small_run(tmp_path: Path) -> None:
    output = tmp_path / "regret.json"
    words = ("--ranks", "2", "--kinds", "allreduce", "--sizes", "8", "4096", "--held-out", "100")
    quick = ("--budget", "0.3", "--cell", "0.05", "--output", str(output))
    subprocess.run(
        [sys.executable, "-m", "bench.regret", *words, *quick], cwd=ROOT, check=True, timeout=60
    )
    found = json.loads(output.read_text())["ranks"]["2"]
    assert [row["nbytes"] for row in found["cells"]] == [8, 100, 4096]
    assert found["summary"]["of"] == 3
    for row in found["cells"]:
        assert row["seconds"] > 0
        assert len(row["candidates"]) >= 4
        assert row["tuned"]["low"] <= row["tuned"]["ratio"] <= row["tuned"]["high"]
