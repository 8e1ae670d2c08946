# SPDX-License-Identifier: Apache-2.0
"""Traces of ranks that are processes, one of which dies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.processes.jobs import collrun
from tests.processes.tracing import VICTIM

pytestmark = pytest.mark.processes

P = 3


def test_processes_write_one_file_and_the_living_their_parts(tmp_path: Path) -> None:
    command = ("-n", P, "--grace", 10, "-m", "tests.processes.rank", "tracing.traces", tmp_path)
    assert collrun(*command, tmp_path).returncode != 0
    whole = json.loads((tmp_path / "whole.json").read_text())
    calls = [e for e in whole["traceEvents"] if e.get("cat") == "operation"]
    for rank in range(P):
        names = [e["name"] for e in calls if e["pid"] == rank and "group" not in e["name"]]
        assert names == ["allreduce", "barrier"]
    begin = {e["pid"]: e["ts"] for e in calls if e["name"] == "barrier"}
    end = {e["pid"]: e["ts"] + e["dur"] for e in calls if e["name"] == "barrier"}
    assert max(begin.values()) <= min(end.values())  # one clock: nobody leaves before all came
    assert not (tmp_path / "broken.json").exists()
    for rank in set(range(P)) - {VICTIM}:
        part = json.loads((tmp_path / f"broken.rank{rank}.json").read_text())
        mine = [e for e in part["traceEvents"] if e.get("cat") == "operation"]
        assert {e["pid"] for e in mine} == {rank}
        assert mine[0]["name"] == "barrier"
        (told,) = json.loads((tmp_path / f"told{rank}.json").read_text())
        assert f"rank {VICTIM}" in told
        assert f"broken.rank{rank}.json" in told
