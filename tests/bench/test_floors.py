# SPDX-License-Identifier: Apache-2.0
"""Floors: how blocks are judged, and one real run of the native program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.limits import __main__ as command
from bench.limits import program
from bench.limits.floors import judge_floors


def block(ours: float, *hands: float, line: float = 50.0) -> dict[str, Any]:
    return {
        "kind": "alltoall",
        "bytes": 4096,
        "line_before_ns": line,
        "line_after_ns": 60.0 if line < 100 else line,
        "empty_ns": 100.0,
        "ns": ours,
        "hands": dict(zip("ab", hands, strict=True)),
    }


def test_the_floor_is_the_way_with_the_least_median_net_of_the_clock() -> None:
    near, far = judge_floors(
        [
            block(1100, 1000, 900),
            block(1100, 1000, 950),
            block(600, 150, 1100),  # once is not often
            block(300, 200, 900, line=250),
            block(1, 1, 1, line=110) | {"line_after_ns": 300.0},  # saw both
        ]
    )
    assert (near.placement, near.blocks, near.by) == ("near", 3, "b")
    assert (near.ours_ns, near.floor_ns) == (1000, 850)
    assert (near.share, near.worst, near.best) == (0.85, 0.8, 2.0)
    assert near.met
    assert (far.placement, far.by, far.share, far.met) == ("far", "a", 0.5, False)


@pytest.mark.long
@pytest.mark.timeout(400)  # it may have to build the library first
def test_a_real_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(program.READY, str(program.program("package")))
    written = tmp_path / "floors.json"
    options = ["--floors", "--blocks", "2", "--sizes", "8,64K,1M", "--output", str(written)]
    monkeypatch.setattr("sys.argv", ["limits", *options])
    assert command.main() == 0
    shown = capsys.readouterr().out
    rows = json.loads(written.read_text(encoding="utf-8"))["rows"]
    kinds = {row["kind"] for row in rows}
    assert kinds <= {"allreduce", "reduce_scatter", "allgather", "broadcast", "alltoall"}
    for row in rows:
        assert row["ours_ns"] > 0
        assert row["floor_ns"] > 0
        # The share is rounded, and may then be what it is held against.
        assert row["met"] == (row["share"] >= 0.85) or row["share"] == 0.85
        assert row["kind"] in shown


@pytest.mark.long
def test_every_collective_is_measured_beside_several_ways() -> None:
    built = program.program("package")
    blocks = program.floors(built, [8, 128 << 10])
    assert len({(block["kind"], block["bytes"]) for block in blocks}) == len(blocks) == 10
    for block in blocks:
        assert len(block["hands"]) >= 4
        assert ("two-shot" in " ".join(block["hands"])) == (
            block["kind"] == "allreduce" and block["bytes"] > 8
        )
    (one,) = program.floors(built, [4096], ["alltoall"])
    assert (one["kind"], one["bytes"]) == ("alltoall", 4096)
    with pytest.raises(program.ProgramError, match="multiple of 8 bytes, got 12"):
        program.floors(built, [12])
    with pytest.raises(program.ProgramError, match="multiple of 8 bytes, got allreducer"):
        program.floors(built, [8], ["allreducer"])
