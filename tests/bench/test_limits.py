# SPDX-License-Identifier: Apache-2.0
"""The limits: how blocks are judged, and one real run of the native program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.limits import __main__ as command
from bench.limits import program
from bench.limits.judge import allowed_ns, from_pairs, judge


def block(**changed: Any) -> dict[str, Any]:
    near = {
        "row": "allreduce 8 B, 2 threads",
        "ranks": 2,
        "bytes": 8,
        "block": 0,
        "ns": 120.0,
        "line_before_ns": 40.0,
        "line_after_ns": 60.0,
        "yield_ns": 0.0,
        "copy_gbs": 0.0,
    }
    return near | changed


def test_what_the_goals_allow() -> None:
    assert allowed_ns(block()) == 2 * 50 + 50
    (pair,) = from_pairs([{"row": "8 B", "hand_ns": 100.0, "plan_ns": 110.0, "line_ns": 50.0}])
    assert (pair["row"], pair["ns"]) == ("plan: 8 B", 110)
    assert allowed_ns(pair) == pytest.approx(1.1 * 100 + 5)
    assert allowed_ns(block(ranks=8, yield_ns=400.0)) == 40_000
    assert allowed_ns(block(bytes=1 << 20, copy_gbs=40.0)) == pytest.approx((1 << 20) / 6.0)


def test_blocks_are_judged_by_placement_and_those_that_saw_both_are_left_out() -> None:
    far = {"line_before_ns": 250.0, "line_after_ns": 250.0}
    mixed = {"line_before_ns": 50.0, "line_after_ns": 250.0}
    found = judge(
        [block(), block(ns=300.0), block(ns=75.0), block(ns=660.0, **far), block(**mixed)]
    )
    near, other = found
    assert (near.placement, near.blocks, near.measured_ns, near.allowed_ns) == ("near", 3, 120, 150)
    assert (near.share, near.best, near.worst, near.met) == (0.8, 0.5, 2.0, True)
    assert (other.placement, other.share, other.met) == ("far", 1.2, False)


def test_a_program_that_fails_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho coll_limits: no cores >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(program.ProgramError, match="no cores"):
        program.blocks(broken, 1)


@pytest.mark.timeout(400)  # it may have to build the library first
def test_a_real_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = program.program("dev")
    assert 1 < program.line_latency(built) < 100_000
    names = [block["row"] for block in program.blocks(built, 1)]
    assert len(names) == len(set(names)) == 8
    monkeypatch.setenv(program.READY, str(built))
    written = tmp_path / "limits.json"
    monkeypatch.setattr("sys.argv", ["limits", "--blocks", "1", "--output", str(written)])
    assert command.main() == 0
    shown = capsys.readouterr().out
    document = json.loads(written.read_text(encoding="utf-8"))
    assert document["rows"]
    for row in document["rows"]:
        assert row["row"] in shown
        assert row["measured_ns"] > 0
        assert row["met"] == (row["share"] <= 1)
    assert {"cpu", "cores", "kernel", "date", "commit"} <= document["machine"].keys()
