# SPDX-License-Identifier: Apache-2.0
"""The schedule of rounds, with a machine and teams that do as they are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.peers.cells import Cell, Record
from bench.peers.libraries import TeamName
from bench.peers.rounds import MOST_CALLS, Effort, Session, calls_for, hopeless, lacks, rounds_of
from bench.peers.teams import Flow, Result, TeamError

OURS, OPEN = TeamName.read("ours/ordinary"), TeamName.read("openmpi/single")
SINGLE, MULTIPLE = TeamName.read("mpich/single"), TeamName.read("mpich/multiple")
CELLS = [Cell("allreduce", "float32", 2, nbytes) for nbytes in (8, 4096)]


class Clock:
    """Goes on by itself a little whenever it is looked at, and by what is slept."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1e-5
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.peers.rounds.time", Clock())


class Machine:
    """Answers with the given latencies, then with the last for ever."""

    def __init__(self, *lines: float) -> None:
        self.lines = list(lines)
        self.limits: list[str] = []

    def line(self) -> float:
        return self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]

    def limit(self, name: str, nbytes: int) -> float:
        self.limits.append(f"{name} {nbytes}")
        return 7.0


class Team:
    """Takes the given microseconds for a call, and notes what it is asked."""

    def __init__(self, name: TeamName, *times: float, refuses: str | None = None) -> None:
        self.name = name
        self.times = list(times)
        self.refuses = refuses
        self.log: list[str] = []
        self.closed = False

    def prepare(self, kind: str, dtype: str, nbytes: int) -> str | None:
        self.log.append(f"{kind} {dtype} {nbytes}")
        return self.refuses

    def measure(self, calls: int, warm: int) -> Result:
        if not self.times:
            raise TeamError("it has died")
        time = self.times.pop(0) if len(self.times) > 1 else self.times[0]
        ORDER.append(self.name.library)
        return Result(np.full(calls, time * 1e-6), 0, (calls + warm) * time * 1e-6)

    def flow(self, calls: int, drain: int) -> Flow:
        self.log.append(f"{calls} behind {drain}")
        return Flow(self.times[0] / 2 * 1e-6, 0)

    def close(self) -> None:
        self.closed = True


ORDER: list[str] = []


def session(
    teams: list[Team], machine: Machine, cells: list[Cell] = CELLS, **effort: Any
) -> Session:
    """Return a session that these teams have measured."""
    found = empty(machine, cells, **effort)
    run(found, teams, 2.0)
    return found


def empty(machine: Machine, cells: list[Cell], **effort: Any) -> Session:
    ORDER.clear()
    settings = {"blocks": 3, "most": 6, "patience": 0.05, "seconds": 20.0} | effort
    only: Any = machine
    return Session(cells, only, Effort(**settings), lambda _: None)


def run(found: Session, teams: list[Team], share: float) -> None:
    some: Any = teams
    found.run(some, share)


def test_every_cell_gets_its_rounds_in_the_placement_that_comes() -> None:
    machine = Machine(50.0)
    found = session([Team(OURS, 2.0), Team(OPEN, 3.0)], machine)
    for record in found.records:
        assert rounds_of(record, "near", [OURS, OPEN]) == 3
        assert record.sheets["far"].blocks == {}
        assert record.sheets["near"].limit("line") == 50.0
    assert machine.limits.count("streaming 4096") == machine.limits.count("yield 8") == 1


def test_calls_back_to_back_are_timed_where_a_goal_asks_for_them() -> None:
    ours, peer = Team(OURS, 2.0), Team(OPEN, 3.0)
    cells = [Cell("allreduce", "float32", 8, 8), Cell("allreduce", "float32", 8, 32)]
    found = session([ours, peer], Machine(50.0), cells)
    flows = [list(record.sheets["near"].flows.get(OURS, {}).values()) for record in found.records]
    assert flows == [[1.0, 1.0, 1.0], []]
    assert not any("behind" in line for line in peer.log)


def test_both_placements_are_measured_when_both_come() -> None:
    lines = ([40.0] * 20 + [240.0] * 20) * 10
    found = session([Team(OURS, 2.0), Team(OPEN, 3.0)], Machine(*lines), patience=5.0)
    for record in found.records:
        assert [rounds_of(record, p, [OURS, OPEN]) for p in ("near", "far")] == [3, 3]


def test_the_order_of_the_libraries_turns_around() -> None:
    session([Team(OURS, 2.0), Team(OPEN, 3.0)], Machine(50.0), CELLS[:1])
    assert ORDER[2:] == ["ours", "openmpi", "openmpi", "ours", "ours", "openmpi"]  # two prime


def test_a_block_that_saw_both_placements_is_repeated() -> None:
    # What is looked at: the start, after the probe of a limit, and after each block.
    machine = Machine(50.0, 50.0, 250.0, 50.0, 50.0)
    found = session([Team(OURS, 2.0, 9.0, 9.0, 4.0), Team(OPEN, 5.0)], machine, CELLS[:1])
    sheet = found.records[0].sheets["near"]
    assert sheet.blocks[OURS] == {1: 4.0, 2: 4.0, 3: 4.0}


def test_wide_ratios_get_more_rounds_up_to_a_bound() -> None:
    wild = [1.0, *[0.2, 9.0, 0.5, 5.0, 0.3, 2.0, 0.1, 8.0]]
    found = session([Team(OURS, 2.0), Team(OPEN, *wild)], Machine(50.0), CELLS[:1])
    assert rounds_of(found.records[0], "near", [OURS, OPEN]) == 6


def test_a_team_that_dies_is_left_out_and_named() -> None:
    dying = Team(OPEN)
    found = session([Team(OURS, 2.0), dying], Machine(50.0))
    assert found.lost == {OPEN: "it has died"}
    assert dying.closed
    assert rounds_of(found.records[1], "near", [OURS]) == 3


def test_a_library_that_refuses_is_not_measured() -> None:
    found = session([Team(OURS, 2.0), Team(OPEN, refuses="has no float32")], Machine(50.0))
    assert found.records[0].refused == {OPEN: "has no float32"}
    assert found.records[0].sheets["near"].blocks.keys() == {OURS}
    nobody = session([Team(OURS, refuses="no"), Team(OPEN, 1.0)], Machine(50.0))
    assert nobody.records[0].sheets["near"].blocks == {}


def test_the_time_is_bounded() -> None:
    found = session([Team(OURS, 2.0)], Machine(50.0), seconds=0.0)
    assert found.records[0].sheets["near"].blocks == {}


def test_teams_that_are_made_anew_go_on_where_the_last_ones_ended() -> None:
    found = empty(Machine(50.0), CELLS, blocks=5, most=9)
    counts = []
    for share in (1 / 3, 2 / 3, 1.0, 1.5, 2.0):
        assert found.wants(share)
        run(found, [Team(OURS, 2.0), Team(OPEN, 2 + 4 * share)], share)
        counts.append(rounds_of(found.records[0], "near", [OURS, OPEN]))
    assert counts == [2, 4, 5, 7, 9]  # such teams make the ratio wide
    assert not found.wants(2.0)
    times = set(found.records[0].sheets["near"].blocks[OPEN].values())
    assert sorted(times) == pytest.approx([2 + 4 / 3, 2 + 8 / 3, 6.0, 8.0, 10.0])


def test_rounds_that_never_get_whole_are_given_up() -> None:
    record, effort = Record(CELLS[0]), Effort(blocks=3, tries=30)
    assert lacks(record, "near", [OURS, OPEN], effort)
    record.tries["near"] = 30
    assert not lacks(record, "near", [OURS, OPEN], effort)


@pytest.mark.parametrize(
    ("slow", "blocks", "expected"), [(50, 3, True), (50, 2, False), (7, 3, False)]
)
def test_a_way_is_hopeless_beside_a_much_faster_one(
    slow: float, blocks: int, expected: bool
) -> None:
    sheet = Record(CELLS[0]).sheets["near"]
    for turn in range(blocks):
        sheet.add(SINGLE, turn, 2.0)
        sheet.add(MULTIPLE, turn, slow)
        sheet.add(OURS, turn, 1e4)
        sheet.add(OPEN, turn, 1e4)
    assert hopeless(sheet, MULTIPLE) == expected
    assert not any(hopeless(sheet, team) for team in (SINGLE, OURS, OPEN))


def test_blocks_have_as_many_calls_as_fit() -> None:
    assert calls_for(1e-9)[0] == MOST_CALLS
    assert calls_for(1e-4) == (250, 13)
    assert calls_for(0.02) == (3, 1)
    assert calls_for(0.2) == (1, 0)  # 256 MiB: the rounds are the sample
