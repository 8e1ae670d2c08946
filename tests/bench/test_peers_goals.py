# SPDX-License-Identifier: Apache-2.0
"""What blocks say: rivals, ratios, goals, tables and files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.cells import Cell, Record, Sheet
from bench.peers.goals import (
    BRIEFLY,
    GOALS,
    NOT_MEASURED,
    NOT_SEEN,
    STREAMING,
    YIELD,
    Goal,
    Judged,
    asked,
    cells_of_goals,
    judge,
    reference,
    unsure,
    wants_floor,
    wants_flow,
)
from bench.peers.libraries import TeamName, teams
from bench.peers.plot import plot
from bench.peers.report import Results, goals, tables
from bench.peers.statistics import INCOMPLETE, MET, MISSED, UNDECIDED

OURS, AGAIN = TeamName.read("ours/ordinary"), TeamName.read("ours/ordinary/again")
GLOO, SINGLE = TeamName.read("gloo/torch"), TeamName.read("mpich/single")
MULTIPLE, OPEN = TeamName.read("mpich/multiple"), TeamName.read("openmpi/single")
STEADY = {turn: 1 + turn % 3 / 100 for turn in range(15)}
MIDDLE = 1.01


def filled(sheet: Sheet, **times: float) -> Sheet:
    """Enter 15 rounds of nearly equal blocks: team, with _ for /, = microseconds."""
    for name, time in times.items():
        for turn, factor in STEADY.items():
            sheet.add(TeamName.read(name.replace("_", "/")), turn, time * factor)
    return sheet


def measured(nbytes: int, place: str = "near", **times: float) -> Record:
    record = Record(Cell("allreduce", "float32", 2, nbytes))
    filled(record.sheets[place], **times)
    return record


def the(judged: list[Judged], goal: Goal, place: str) -> Judged:
    return next(row for row in judged if row.goal == goal and row.placement == place)


def test_the_rival_is_the_best_peer_at_its_best_level() -> None:
    sheet = filled(Sheet(), ours_ordinary=2, gloo_torch=200, mpich_single=9, mpich_multiple=4)
    assert (sheet.rival(), sheet.best(["gloo"])) == (MULTIPLE, GLOO)
    ratio = sheet.ratio(sheet.rival(), OURS)
    assert ratio is not None
    assert ratio.value == pytest.approx(2.0)
    assert ratio.count == 15
    assert sheet.ratio(OPEN, OURS) is None
    assert sheet.against_itself() is None
    again = filled(sheet, ours_ordinary_again=2.2).against_itself()
    assert again is not None
    assert again.value == pytest.approx(1.1)
    assert sheet.variants() == [OURS]


def test_goals_are_judged_in_each_placement() -> None:
    goal = GOALS[0]
    sizes = [cell.nbytes for cell in goal.cells()]
    fast = [measured(n, ours_ordinary=1, openmpi_single=1.6) for n in sizes]
    assert the(judge(fast), goal, "near").verdict == MET
    assert the(judge(fast), goal, "far").verdict == BRIEFLY
    fast[3].seconds = 1200.0
    assert the(judge(fast), goal, "far").verdict == NOT_SEEN
    assert the(judge(fast[1:]), goal, "near").verdict == INCOMPLETE
    del fast[0].sheets["near"].blocks[OPEN][3]
    row = the(judge(fast), goal, "near")
    assert (row.verdict, row.sizes, row.at(INCOMPLETE)) == (INCOMPLETE, 13, [8])
    slow_once = [measured(8, ours_ordinary=1, openmpi_single=0.9), *fast[1:]]
    row = the(judge(slow_once), goal, "near")
    assert (row.verdict, row.at(MISSED), row.sizes) == (MISSED, [8], 14)
    assert the(judge(slow_once[:2]), goal, "near").verdict == MISSED  # one size is enough
    assert row.lowest is not None
    assert row.lowest.nbytes == 8
    tied = [measured(n, ours_ordinary=1, openmpi_single=1.2) for n in sizes]
    assert the(judge(tied), goal, "near").verdict == MISSED  # the mean
    assert the(judge(tied[1:]), goal, "near").verdict == INCOMPLETE  # not a mean of all
    assert the(judge([]), goal, "near").verdict == NOT_MEASURED


def test_a_wide_interval_with_the_goal_inside_is_undecided_and_wants_more_rounds() -> None:
    record = measured(8, ours_ordinary=1)
    assert not unsure(record, "near")
    for turn in STEADY:
        record.sheets["near"].add(OPEN, turn, 0.5 + turn % 5 / 4)
    assert unsure(record, "near")
    assert the(judge([record]), GOALS[0], "near").at(UNDECIDED) == [8]
    assert not unsure(measured(8, ours_ordinary=1, openmpi_single=1.4), "near")


def test_what_the_limit_allows_lowers_a_goal() -> None:
    goal = Goal("allreduce", "float32", 2, 8, 8, "symmetric", every=2, of_limit=0.9)
    sheet = filled(Sheet(), ours_symmetric=1, openmpi_single=150)
    assert asked(goal, sheet, 1 << 20) == 2  # nothing was probed
    sheet.probe("copy", 5.0)
    sheet.probe("streaming", 10.0)
    allowed = 150 * MIDDLE / ((1 << 20) / 10.0 / 1e3)
    assert asked(goal, sheet, 1 << 20) == pytest.approx(0.9 * allowed)
    sheet.probe("peer", 1000.0)
    assert asked(goal, sheet, 1 << 20) == 2


def test_a_floor_of_the_same_run_lowers_a_goal() -> None:
    goal = Goal("allgather", "float32", 2, 8, 32 << 20, every=0.95, of_floor=0.85)
    sheet = filled(Sheet(), ours_ordinary=10, openmpi_single=8)
    assert asked(goal, sheet, 1 << 20) == 0.95  # none was measured
    for ways in ({"a": 9.0, "b": 12.0}, {"a": 9.5, "b": 4.0}, {"a": 10.0, "b": 12.0}):
        sheet.probe_floor(ways)
    assert (sheet.floor_blocks(), sheet.floor()) == (3, 9.5)  # once is not often
    assert asked(goal, sheet, 1 << 20) == pytest.approx(0.85 * 8 * MIDDLE / 9.5)
    without = Goal("allgather", "float32", 2, 8, 32 << 20, every=0.95)
    assert asked(without, sheet, 1 << 20) == 0.95


def test_a_call_far_behind_peer_and_floor_has_missed() -> None:
    cell = Cell("allgather", "float32", 2, 1 << 20)
    assert wants_floor(cell)
    assert not wants_floor(replace(cell, kind="allreduce"))
    record = Record(cell)
    filled(record.sheets["near"], ours_ordinary=8000, openmpi_single=8)
    record.sheets["near"].probe_floor({"a": 9.5})
    goal = next(goal for goal in GOALS if goal.covers(cell))
    assert the(judge([record]), goal, "near").at(MISSED) == [1 << 20]


def test_floors_survive_a_file() -> None:
    record = Record(Cell("allgather", "float32", 2, 1 << 20))
    record.sheets["far"].probe_floor({"a": 9.0, "b": 12.0})
    read = Record.from_json(record.as_json())
    assert read.sheets["far"].floor() == 9.0
    assert read.sheets["near"].floor() is None


def test_limits_are_references_too() -> None:
    sheet = filled(Sheet(), ours_ordinary=200)
    streaming = Goal("allreduce", "float32", 2, 8, 8, against=STREAMING, every=0.9)
    assert len(reference(streaming, sheet, 1 << 20)) == 0
    sheet.probe("streaming", 10.0)
    sheet.probe("yield", 400.0)
    shares = reference(streaming, sheet, 1 << 20)
    assert sorted(shares)[7] == pytest.approx((1 << 20) / 10e3 / 200 / MIDDLE)
    yields = Goal("allreduce", "float32", 8, 8, 8, against=YIELD, every=1 / 20)
    assert len(reference(yields, sheet, 8)) == 0  # calls that began together, on shared cores
    sheet.flows[OURS] = {turn: us / 4 for turn, us in sheet.blocks[OURS].items()}
    assert sorted(reference(yields, sheet, 8))[7] == pytest.approx(0.4 / 50 / MIDDLE)


def test_what_is_timed_back_to_back_survives_a_file() -> None:
    record = Record(Cell("allreduce", "float32", 8, 8))
    record.sheets["near"] = filled(Sheet(), ours_ordinary=200)
    record.sheets["near"].flows[OURS] = {3: 12.5, 4: 13.0}
    read = Record.from_json(record.as_json())
    assert read.sheets["near"].flows == {OURS: {3: 12.5, 4: 13.0}}
    assert read.sheets["far"].flows == {}
    assert wants_flow(record.cell, OURS)
    assert not wants_flow(record.cell, OPEN)
    assert not wants_flow(Cell("allreduce", "float32", 8, 32), OURS)


def test_cells_of_goals_are_those_of_the_ladder() -> None:
    cells = cells_of_goals(["ordinary", "symmetric"])
    assert len(cells) == len(set(cells)) == 3 * 14 + 7 * 12 + 2 * 11
    assert Cell("allreduce", "bfloat16", 2, 256 << 20) in cells
    assert all(any(goal.covers(cell) for goal in GOALS) for cell in cells)
    kinds = {cell.kind for cell in cells_of_goals(["torch"])}
    assert kinds == {"allreduce", "reduce_scatter", "allgather"}


def test_a_file_holds_all_that_the_tables_need(tmp_path: Path) -> None:
    record = measured(8, ours_ordinary=1, mpich_single=2.5, ours_ordinary_again=1)
    record.sheets["near"].probe("line", 50.0)
    record.refused[GLOO] = "has no float32"
    record.wrong[SINGLE] = 3
    other = measured(1 << 20, "far", ours_ordinary=30, gloo_torch=900)
    other.sheets["far"].probe("streaming", 20.5)
    path = tmp_path / "peers.json"
    Results([record, other], {"mpich": "5.0.2"}, {"impi/single": "died"}).write(path)
    found = Results.read([path])
    assert [r.cell for r in found.records] == [record.cell, other.cell]
    assert found.records[0].refused == record.refused
    assert found.records[0].wrong == record.wrong
    assert (found.versions, found.lost) == ({"mpich": "5.0.2"}, {"impi/single": "died"})
    assert {"cpu", "date", "commit"} <= found.machine.keys()
    for place in ("near", "far"):
        for written, read in zip([record, other], found.records, strict=True):
            assert read.sheets[place] == written.sheets[place]


def test_tables_show_ratios_and_placements_that_were_not_seen() -> None:
    records = [measured(8, ours_ordinary=1, mpich_single=2.5, gloo_torch=90)]
    records[0].sheets["near"].probe("line", 51.0)
    near, limits, far = (table.markdown() for table in tables(records))
    assert near.startswith("**allreduce of float32, 2 ranks, near**")
    assert re.search(r"\| 8 \| 15 \| 1\.01 \| 2\.50 \[2\.50, 2\.50\] \| mpich/single \|", near)
    assert "| 8 | 51.0 |  |" in limits
    assert "far: not seen" in far
    shown = goals(judge(records)).markdown()
    assert re.search(r"256M: Gloo \| near \| 1/14 \| 90\.0 .* at 8 \| 2\.00 .* incomplete", shown)
    assert "symmetric" not in shown


def test_the_plot_is_drawn(tmp_path: Path) -> None:
    records = [measured(n, ours_ordinary=1, mpich_single=2, gloo_torch=9) for n in (8, 64)]
    plot(records, tmp_path / "peers.png")
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")


def test_the_teams_of_a_run() -> None:
    names = [str(team) for team in teams(["gloo", "mpich"], ["ordinary"])]
    assert names == [
        "ours/ordinary", "gloo/torch", "mpich/single", "mpich/multiple", "ours/ordinary/again",
    ]  # fmt: skip
