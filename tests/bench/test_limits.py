# SPDX-License-Identifier: Apache-2.0
"""The limits: how blocks are judged, and one real run of the native program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.call_cost import Callers
from bench.limits import __main__ as command
from bench.limits import program
from bench.limits.goals import goals_of
from bench.limits.judge import SAME_KERNELS, from_pairs, judge
from bench.limits.persistent import ROW, from_python


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
        "switch_ns": 0.0,
        "copy_gbs": 0.0,
    }
    return near | changed


def both(plan: float = 110.0, line: float = 50.0, **loops: float) -> dict[str, Any]:
    """Return what the program says of one pair."""
    lines = {"line_before_ns": line, "line_after_ns": line}
    hand = {"hand_ns": 100.0, "loops_ns": loops}
    return {"row": "8 B", "bytes": 8, "plan_ns": plan} | hand | lines


def pair(plan: float = 110.0) -> dict[str, Any]:
    (made,) = from_pairs([both(plan, one=105.0)])
    return made


def allowed(one: dict[str, Any]) -> dict[str, Any]:
    """Return nanoseconds by goal."""
    return {goal.words: pytest.approx(goal.allowed_ns(one)) for goal in goals_of(one)}


def test_what_the_goals_allow() -> None:
    assert allowed(block()) == {"<= 2 x line + 50 ns": 150, "<= 1.3 x line + 20 ns": 85}
    assert (pair()["row"], pair()["ns"]) == ("plan: 8 B", 110)
    assert allowed(pair()) == {"<= 1.1 x by hand + 5 ns": 115, "<= 1.05 x by hand + 5 ns": 110}
    eight = block(ranks=8, yield_ns=400.0, switch_ns=900.0)
    assert allowed(eight) == {"<= 20 x sched_yield": 8_000}  # of the one that is alone
    assert allowed(block(ranks=4, yield_ns=400.0)) == {"<= 100 x sched_yield": 40_000}
    large = block(bytes=1 << 20, copy_gbs=40.0)
    assert allowed(large) == {">= 0.15 x plain copy": (1 << 20) / 6.0}
    assert allowed(block(empty_ns=70.0)) == {"<= 1.6 x empty call + 2 x line": 212}


def test_a_plan_is_held_to_the_best_loop_of_its_placement() -> None:
    pairs = [both(one=80.0, two=90.0), both(one=130.0, two=91.0), both(one=99.0, two=10.0)]
    far = both(line=250.0, one=140.0, two=150.0)
    made = from_pairs([*pairs, far])
    assert [block["best"] for block in made] == ["two"] * 3 + [SAME_KERNELS]  # by their medians
    assert [block["hand_ns"] for block in made] == [90, 91, 10, 100]
    assert allowed(made[0])["<= 1.1 x by hand + 5 ns"] == 104
    assert {block["row"] for block in made} == {"plan: 8 B"}


def test_a_row_is_held_against_each_of_its_goals() -> None:
    easy, hard = judge([block(ns=90.0)])
    assert (easy.row, easy.allowed_ns, easy.met) == (hard.row, 150, True)
    assert (hard.allowed_ns, hard.met) == (85, False)


def test_a_verdict_on_the_plan_needs_thirty_pairs() -> None:
    for count, enough in ((29, False), (30, True)):
        lenient, strict = judge([pair(plan=112.0)] * count)
        assert (lenient.met, lenient.enough) == (True, True)
        assert (strict.met, strict.enough) == (False, enough)
        assert strict.as_json()["enough"] == enough
        assert ("(few)" in command.verdict(strict)) != enough


def test_both_yields_are_told_where_ranks_share_cores() -> None:
    shared = {"row": "8 threads", "ranks": 8, "yield_ns": 400.0}
    found, *_ = judge([block(**shared, switch_ns=ns) for ns in (800.0, 1000.0, 900.0)])
    assert (found.yield_ns, found.switch_ns) == (400, 900)
    assert found.as_json()["switch_ns"] == 900
    assert "400 ns; switching 900 ns" in command.yields(found)
    assert command.yields(judge([block()])[0]) == ""


def test_blocks_are_judged_by_placement_and_those_that_saw_both_are_left_out() -> None:
    far = {"line_before_ns": 250.0, "line_after_ns": 250.0}
    mixed = {"line_before_ns": 50.0, "line_after_ns": 250.0}
    found = judge(
        [block(), block(ns=300.0), block(ns=75.0), block(ns=660.0, **far), block(**mixed)]
    )
    near, other = (row for row in found if row.goal == "<= 2 x line + 50 ns")
    assert (near.placement, near.blocks, near.measured_ns, near.allowed_ns) == ("near", 3, 120, 150)
    assert (near.share, near.best, near.worst, near.met) == (0.8, 0.5, 2.0, True)
    assert (other.placement, other.share, other.met) == ("far", 1.2, False)


def test_a_program_that_fails_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho coll_limits: no cores >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(program.ProgramError, match="no cores"):
        program.blocks(broken, 1)


@pytest.mark.long
@pytest.mark.timeout(400)  # it may have to build the library first
def test_a_real_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = program.program("package")
    assert 1 < program.line_latency(built) < 100_000
    measured: list[Any] = []

    def blocks(path: Path, count: int) -> list[Any]:
        measured.extend(program.blocks(path, count))
        return list(measured)

    monkeypatch.setattr(command, "blocks", blocks)
    monkeypatch.setenv(program.READY, str(built))
    written = tmp_path / "limits.json"
    monkeypatch.setattr("sys.argv", ["limits", "--blocks", "1", "--output", str(written)])
    assert command.main() == 0
    names = [block["row"] for block in measured]
    assert len(names) == len(set(names)) == 8
    for one in measured:
        assert (one["yield_ns"] > 0) == (one["switch_ns"] > 0) == (one["ranks"] > 2)
    shown = capsys.readouterr().out
    document = json.loads(written.read_text(encoding="utf-8"))
    assert document["rows"]
    assert all(row["placement"] in ("near", "far") for row in document["rows"])
    for row in document["rows"]:
        assert row["row"] in shown
        assert row["measured_ns"] > 0
        assert row["met"] == (row["share"] <= 1)
        assert row["enough"] == (row["blocks"] >= row["least_blocks"])
    assert {"cpu", "cores", "kernel", "date", "commit"} <= document["machine"].keys()


@pytest.mark.long
@pytest.mark.timeout(400)  # it may have to build the library first
def test_persistent_calls_are_measured_beside_an_empty_one() -> None:
    with Callers(2) as callers:
        one, _ = from_python(program.program("package"), callers, 2)
    assert one["row"] == ROW
    assert min(one["ns"], one["empty_ns"], one["line_before_ns"], one["line_after_ns"]) > 0
    (goal,) = goals_of(one)
    assert goal.words == "<= 1.6 x empty call + 2 x line"
