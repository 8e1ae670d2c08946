# SPDX-License-Identifier: Apache-2.0
"""Rows of a figure and its goal; how a program ends, and one that runs them all."""

from __future__ import annotations

import json
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from bench.hosts import all as whole
from bench.hosts.goals import VOID
from bench.hosts.records import Spread
from bench.hosts.verdicts import Goal, Row, code, finish
from bench.peers.statistics import INCOMPLETE, MET, MISSED
from bench.record import ROOT


def row(value: float, goal: Goal | None = None, count: int = 3, **more: Any) -> Row:
    return Row("a figure", Spread(value, value, value, count), goal, **more)


def test_a_goal_is_a_floor_or_a_ceiling() -> None:
    least, most = Goal(0.9), Goal(3.0, most=True)
    assert [row(value, least).verdict for value in (0.9, 0.89)] == [MET, MISSED]
    assert [row(value, most).verdict for value in (3.0, 3.01)] == [MET, MISSED]
    assert (str(least), str(most)) == (">= 0.9", "<= 3")


def test_few_rounds_and_none_decide_nothing() -> None:
    assert row(1.0, Goal(0.9), count=2).verdict == INCOMPLETE
    assert Row("a figure", None, Goal(0.9)).verdict == INCOMPLETE
    assert row(1.0).verdict == ""
    assert row(1.0, Goal(0.9), void="no bytes").verdict == VOID


def test_how_a_program_ends() -> None:
    good, missed = row(1.0, Goal(0.9)), row(0.8, Goal(0.9))
    assert code([good, row(1.0)], strict=True) == 0
    assert (code([missed], strict=False), code([missed], strict=True)) == (0, 1)
    assert code([row(1.0, wrong=1)], strict=False) == 1
    assert code([row(1.0, Goal(0.9), void="no bytes")], strict=False) == 1


def test_what_is_written_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = Namespace(output=tmp_path / "out.json", strict=False)
    rows = [row(1.0, Goal(0.9), wrong=7), row(0.5, Goal(0.9), void="no bytes")]
    assert finish(chosen, "A table", rows, {"more": 1}) == 1
    told = capsys.readouterr().out
    for part in ("A table", "1.000 [1.000, 1.000]", "void: a figure: no bytes", "wrong: 7"):
        assert part in told
    found = json.loads(chosen.output.read_text(encoding="utf-8"))
    assert found["more"] == 1
    assert "kernel" in found["machine"]
    assert [one["verdict"] for one in found["rows"]] == [MET, VOID]


def test_the_whole_run_names_durations_and_keeps_the_worst_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = iter([0, 1, 2, 0, 0, 0])
    ran = []

    def run(command: list[str], cwd: Path) -> Namespace:
        ran.append(command[2:])
        assert cwd == ROOT
        return Namespace(returncode=next(codes))

    monkeypatch.setattr(subprocess, "run", run)
    assert whole.main(["--strict"]) == 2
    assert ran[1] == ["bench.hosts.levels", "--strict"]
    assert "6 of 6: bench.hosts.shrink" in capsys.readouterr().out
    assert [whole.duration(seconds) for seconds in (59.4, 61)] == ["59 s", "1 min 1 s"]
