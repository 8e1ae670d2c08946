# SPDX-License-Identifier: Apache-2.0
"""Which cell is measured next, and one round of it: a block of every team, in turn.

The placement of the cores changes under the measurement, and nothing can be done about it. So the
cell that is measured is one that lacks rounds in the placement of the moment; when no cell does,
the run waits for the other placement, up to its patience.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.peers.cells import PLACEMENTS, Cell, Record, Sheet
from bench.peers.floors import floor_block
from bench.peers.goals import unsure, wants_floor, wants_flow
from bench.peers.libraries import OURS, TeamName
from bench.peers.machine import Machine, limits_of, where
from bench.peers.teams import Result, Team, TeamError

BLOCK_S = 0.025
MOST_CALLS, SOME_CALLS = 4000, 3
SLOW_BLOCK_S = 0.3  # SOME_CALLS are made only up to this
WARM_SHARE = 20  # one call in so many is made before, to wake the caches
REPEATS = 3  # of a block that saw both placements
SITTING = 5  # rounds before another cell has its turn
PROBES = 6  # of the limits at most, for each sheet, one in a sitting
HOPELESS = 4.0  # times the library's other way: then that one will do
FLOW = 500, 50  # calls back to back, and how many go before them
LEAST_SEEN = 3  # blocks before a way is called hopeless


@dataclass(frozen=True)
class Effort:
    """How much to measure. `blocks`: of each team in each placement; wide ratios get `most`.

    `seconds`: for all; `patience`: of them, without a placement that is lacking.
    """

    blocks: int = 15
    most: int = 45
    tries: int = 150  # rounds begun, whole or not
    seconds: float = 1e9
    patience: float = 1200.0

    def part(self, share: float) -> Effort:
        """Return the effort up to a share of the whole: above 1, for wide ratios, up to 2."""
        blocks = math.ceil(self.blocks * min(share, 1))
        return replace(
            self,
            blocks=blocks,
            most=blocks + math.ceil((self.most - self.blocks) * max(share - 1, 0)),
            tries=math.ceil(self.tries * share / 2),
            seconds=self.seconds * min(share, 1),
        )


def rounds_of(record: Record, place: str, teams: Sequence[TeamName]) -> int:
    """Return how many rounds all teams share that can share them."""
    sheet = record.sheets[place]
    taking = [team for team in teams if team not in record.refused]
    ours = [team for team in taking if team.library == OURS]
    counts = [
        len(sheet.ratios(team, reference))
        for team in taking
        for reference in ours
        if not hopeless(sheet, team)
    ]
    return min(counts, default=0)


def hopeless(sheet: Sheet, team: TeamName) -> bool:
    """Whether another way of the same library is so much faster that this one is done with."""
    own, best = sheet.time(team), sheet.best([team.library])
    if team.library == OURS or best is None or own is None:
        return False
    seen = len(sheet.blocks[team]) >= LEAST_SEEN
    return seen and own > HOPELESS * (sheet.time(best) or own)


def lacks(record: Record, place: str, teams: Sequence[TeamName], effort: Effort) -> bool:
    """Whether a cell wants another round in a placement."""
    if all(team in record.refused for team in teams if team.library == OURS):
        return False
    rounds = rounds_of(record, place, teams)
    if rounds < effort.blocks:
        return record.tries[place] < effort.tries
    if rounds >= effort.most or record.tries[place] >= effort.tries:
        return False
    return unsure(record, place)


class Session:
    """The cells of one number of ranks, measured by teams that are made anew from time to time.

    Two teams of the same library can differ by a fifth for as long as they live: by where their
    memory lies, and by how the kernel places them. So the rounds of a cell come from several.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        machine: Machine,
        effort: Effort,
        say: Callable[[str], None],
    ) -> None:
        """Keep what :meth:`run` needs; `say` gets a sentence now and then."""
        self.records = [Record(cell) for cell in cells]
        self.lost: dict[TeamName, str] = {}
        self._teams: list[Team] = []
        self._machine = machine
        self._whole = self._effort = effort
        self._say = say
        self._begin = time.monotonic()
        self._seen = dict.fromkeys(PLACEMENTS, self._begin)
        self._line = 0.0  # as probed last, ns
        self._pace: dict[tuple[Cell, TeamName], float] = {}  # seconds of a turn, all in all
        self._lacking: dict[tuple[Cell, str], tuple[int, bool]] = {}  # at that number of tries
        self._present: Cell | None = None

    def wants(self, share: float) -> bool:
        """Whether there is time and need to :meth:`run` for a share."""
        self._effort = self._whole.part(share)
        self._lacking.clear()
        before = time.monotonic() < self._deadline()
        return before and (self._present is None or self._lacking_soon())

    def run(self, teams: Sequence[Team], share: float) -> None:
        """Measure with new teams until a share of the rounds is there, or of the time is over.

        Ends too where a placement that is lacking has not come for long.
        """
        self._teams = list(teams)
        self._effort = self._whole.part(share)
        self._pace.clear()
        self._lacking.clear()
        self._present = None
        while time.monotonic() < self._deadline():
            for record in self.records:
                record.seconds = time.monotonic() - self._begin
            self._line = self._machine.line()
            place = where(self._line)
            self._seen[place] = time.monotonic()
            if not self._lacking_soon():
                return
            present = self._next(place)
            if present is None:
                time.sleep(0.02)
            else:
                self._sit(present, place)

    def _deadline(self) -> float:
        return self._begin + self._effort.seconds

    def _lacking_soon(self) -> bool:
        """Whether rounds are lacking in a placement that was seen not long ago."""
        lacking = {p for p in PLACEMENTS if any(self._lacks(r, p) for r in self.records)}
        now = time.monotonic()
        return any(now - self._seen[place] < self._effort.patience for place in lacking)

    def _names(self) -> list[TeamName]:
        return [team.name for team in self._teams]

    def _lacks(self, record: Record, place: str) -> bool:
        key, tries = (record.cell, place), record.tries[place]
        if key not in self._lacking or self._lacking[key][0] != tries:
            self._lacking[key] = tries, lacks(record, place, self._names(), self._effort)
        return self._lacking[key][1]

    def _next(self, place: str) -> Record | None:
        """Return the cell after the present one that lacks rounds; the present one comes last."""
        cells = [record.cell for record in self.records]
        at = cells.index(self._present) + 1 if self._present is not None else 0
        turned = self.records[at:] + self.records[:at]
        return next((record for record in turned if self._lacks(record, place)), None)

    def _sit(self, record: Record, place: str) -> None:
        """Measure some rounds of a cell, while it lacks them in this placement."""
        if record.cell != self._present:
            self._prepare(record)
        before = rounds_of(record, place, self._names())
        self._probe(record, place)
        for _ in range(SITTING):
            if time.monotonic() > self._deadline() or not self._lacks(record, place):
                break
            record.tries[place] += 1
            self._round(record)
            if where(self._line) != place:
                break
        done = rounds_of(record, place, self._names())
        if done > before:
            self._say(f"{record.cell}, {place}: {done} rounds")

    def _probe(self, record: Record, place: str) -> None:
        """Probe the limits some times, each if it sees one placement only."""
        sheet, nbytes = record.sheets[place], record.cell.nbytes
        for limit in limits_of(nbytes):
            if len(sheet.limits.get(limit, ())) < PROBES:
                value = self._machine.limit(limit, nbytes)
                before, self._line = self._line, self._machine.line()
                if where(before, self._line) == place:
                    sheet.probe(limit, value)
        if wants_floor(record.cell) and sheet.floor_blocks() < PROBES:
            block = floor_block(record.cell)
            if block.placement in record.sheets:
                record.sheets[block.placement].probe_floor(block.ways)
            self._line = self._machine.line()

    def _prepare(self, record: Record) -> None:
        """Give every team the cell's buffers, and let it touch them."""
        cell = self._present = record.cell
        for team in list(self._teams):
            with self._losing(team):
                refused = team.prepare(cell.kind, cell.dtype, cell.nbytes)
                if refused is not None:
                    record.refused[team.name] = refused
                    self._lacking.clear()
                    continue
                self._measure(record, team, 1, 1 if (cell, team.name) in self._pace else 2)

    def _round(self, record: Record) -> None:
        """Measure a block of every team, in an order that turns around every time."""
        order = [team for team in self._teams if team.name not in record.refused]
        for team in order if record.turn % 2 else reversed(order):
            place = where(self._line)
            if place in record.sheets and hopeless(record.sheets[place], team.name):
                continue
            with self._losing(team):
                self._block(record, team)

    def _block(self, record: Record, team: Team) -> None:
        """Measure a block, again if it saw both placements; then it is left out."""
        for _ in range(REPEATS):
            calls, warm = calls_for(self._pace[record.cell, team.name])
            result = self._measure(record, team, calls, warm)
            before, self._line = self._line, self._machine.line()
            sheet = record.sheets.get(where(before, self._line))
            if sheet is not None:
                sheet.add(team.name, record.turn, float(np.median(result.durations)) * 1e6)
                sheet.probe("line", (before + self._line) / 2)
                if wants_flow(record.cell, team.name):
                    self._flow(record, team)
                return

    def _flow(self, record: Record, team: Team) -> None:
        """Measure calls back to back, where they see one placement only."""
        flow = team.flow(*FLOW)
        record.add_wrong(team.name, flow.wrong)
        before, self._line = self._line, self._machine.line()
        sheet = record.sheets.get(where(before, self._line))
        if sheet is not None:
            sheet.flows.setdefault(team.name, {})[record.turn] = flow.seconds * 1e6

    def _measure(self, record: Record, team: Team, calls: int, warm: int) -> Result:
        result = team.measure(calls, warm)
        self._pace[record.cell, team.name] = result.seconds / (calls + warm)
        record.add_wrong(team.name, result.wrong)
        return result

    @contextlib.contextmanager
    def _losing(self, team: Team) -> Iterator[None]:
        """Go on without a team that fails."""
        try:
            yield
        except TeamError as error:
            self._say(str(error))
            self.lost[team.name] = str(error)
            self._teams.remove(team)
            self._lacking.clear()
            team.close()


def calls_for(pace: float) -> tuple[int, int]:
    """Return how many calls a block has, and how many come before it, untimed.

    `pace`: seconds of one, with its buffers' filling and reading.
    """
    fitting = min(int(BLOCK_S / pace), MOST_CALLS)
    if fitting >= SOME_CALLS or SOME_CALLS * pace < SLOW_BLOCK_S:
        return max(fitting, SOME_CALLS), 1 + fitting // WARM_SHARE
    return 1, 0
