# SPDX-License-Identifier: Apache-2.0
"""A plan that beat the rules, or seems to, meets them again, several times, seconds apart.

How ranks that share cores take turns, where the cores of a virtual machine are, what else runs
there: such things last longer than a race, and one plan may suit them which does not suit the next.
And of some dozen plans one seems faster beyond doubt by chance, now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from collectives.intervals import of_median
from collectives.tuning.placement import cores_are_far
from collectives.tuning.race import ALIKE, Buffers, Race, Seconds, runners
from collectives.tuning.table import Choice

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.tuning.tuner import Cell, Clock

SHARE = 0.15  # of the time of all races
_LOOKS = 3
_TOUCHED = 2  # times as long as a call it takes with its buffers written before
_ROUNDS, _MOST_ROUNDS = 8, 16  # at a time, and of a look


@dataclass
class Match:
    """The rules of a cell against one other plan, and the pairs of all looks at them."""

    cell: Cell
    rival: Choice
    usual: Choice
    pairs: list[Seconds] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """What the first rounds of a look take."""
        both = [s.seconds for s in self.cell.standings if s.choice in (self.rival, self.usual)]
        return _ROUNDS * _TOUCHED * sum(both)

    def look(self, comm: Communicator, seconds: float) -> None:
        """Race them, for about so long at most. Every rank must."""
        buffers = Buffers(self.cell.kind, self.cell.nbytes, comm.size)
        ready = runners(comm, [self.rival, self.usual], buffers)
        race = Race(comm, ready, buffers)
        for _ in range(0, _MOST_ROUNDS, _ROUNDS):
            race.rounds(_ROUNDS)
            if race.spent > seconds:
                break
        self.pairs.append(race.pairs(*ready))

    def decide(self) -> None:
        """Enter the rival as the winner where it was faster beyond doubt, else the rules.

        It is one plan, found before: 95 % are enough. Without a look all stays as it is.
        """
        if not self.pairs:
            return
        faster, _ = of_median(np.concatenate(self.pairs))
        won = self.rival if faster > ALIKE else self.usual
        self.cell.standings.sort(key=lambda standing: standing.choice != won)


def matches(cells: Sequence[Cell]) -> list[Match]:
    """Return who meets the rules again: what has won against them, or had the shorter median."""
    found = []
    for cell in cells:
        seconds = {standing.choice: standing.seconds for standing in cell.standings}
        others = [choice for choice in seconds if choice != cell.usual]
        if cell.usual not in seconds or not others:
            continue
        rival = others[0]  # they stand by their medians, behind the winner
        if cell.best == rival or seconds[rival] < seconds[cell.usual]:
            found.append(Match(cell, rival, cell.usual))
    return found


def confirm(comm: Communicator, cells: Sequence[Cell], clock: Clock) -> None:
    """Look at the winners and the rules once more, three times, and enter who is faster then.

    What has won stays where there is no time for it, and where the cores of two ranks are no longer
    as far apart. Every rank must call it.
    """
    found = matches(cells)
    for number in range(_LOOKS * len(found)):
        match = found[number % len(found)]
        seconds = clock.left() / (_LOOKS * len(found) - number)
        if seconds > match.seconds and cores_are_far(comm) == match.cell.far:
            match.look(comm, seconds)
    for match in found:
        match.decide()
