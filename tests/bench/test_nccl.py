# SPDX-License-Identifier: Apache-2.0
"""What bench.nccl makes of what the native program prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.nccl import __main__ as program
from bench.nccl.figures import Round, of_calls, of_groups, read


def test_calls_are_judged_by_size_with_a_hundred_nanoseconds_free() -> None:
    rounds = [Round(8, 100.0 * turn, 100.0 * turn + 105) for turn in range(1, 10)]
    rounds += [Round(4096, 1000.0, 1300.0)] * 9
    small, large = of_calls("allreduce", rounds)
    assert (small.key, small.met, small.rounds) == (8, True, 9)
    assert (large.ratio, large.low, large.met) == (1.2, 1.2, False)


def test_groups_are_judged_by_the_median() -> None:
    rounds = [Round(100, 600.0, 100.0)] * 5 + [Round(100, 100.0, 100.0)] * 4
    figure = of_groups("group", rounds, 5)
    assert (figure.ratio, figure.met) == (6.0, True)
    assert of_groups("group", rounds[4:], 5).met is False
    assert of_groups("group", rounds[:2], 5).low is None  # of two rounds nothing is known


def test_from_the_command_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = tmp_path / "coll_nccl"
    lines = "for i in 1 2 3 4 5 6 7 8 9; do echo 100 1000 900; done"
    fake.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv(program.READY, str(fake))
    output = tmp_path / "nccl.json"
    assert program.main(["--output", str(output), "--strict"]) == 1
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert [row["met"] for row in rows] == [True, True, False, False, False]
    assert "2 of 5 goals met" in capsys.readouterr().out
    assert read("8 1.5 2\n") == [Round(8, 1.5, 2.0)]


def test_a_program_that_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(program.READY, "/bin/false")
    assert program.main([]) == 2
    assert "ended with 1" in capsys.readouterr().err
