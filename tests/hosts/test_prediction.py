# SPDX-License-Identifier: Apache-2.0
"""Plans between shaped hosts are measured beside what a simulation on their links says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.record import ROOT

pytestmark = pytest.mark.hosts


def test_a_small_run(possible: None, tmp_path: Path) -> None:
    output = tmp_path / "prediction.json"
    words = ("--hosts", "2", "--kinds", "allreduce", "--sizes", "1024", "65536")
    command = [sys.executable, "-m", "bench.prediction_hosts", *words, "--output", str(output)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    found = json.loads(output.read_text())
    assert [cell["size"] for cell in found["cells"]] == [1024, 65536]
    assert set(found["summary"]["median_by_size"]) == {"1024", "65536"}
    for cell in found["cells"]:
        assert len(cell["plans"]) >= 2
        for plan in cell["plans"]:
            assert plan["measured_us"] > 0
            assert plan["predicted_us"] > 0
