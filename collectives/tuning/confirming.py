# SPDX-License-Identifier: Apache-2.0
"""A plan that beat the library's rules has to beat them once more, some seconds later.

How ranks that share cores take turns, where the cores of a virtual machine are, what else runs
there: such things last longer than a race, and one plan may suit them which does not suit the next.
And of some dozen plans one seems faster beyond doubt by chance, now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collectives.tuning.placement import cores_are_far
from collectives.tuning.race import Buffers, Race, runners

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.tuning.tuner import Cell, Clock

SHARE = 0.15  # of the time of all races
_TOUCHED = 2  # times as long as a call it takes with its buffers written before
_ROUNDS, _MOST_ROUNDS = 8, 40  # at a time, and in all


def doubtful(cells: Sequence[Cell]) -> list[Cell]:
    """Return those where another plan than that of the rules has won."""
    return [c for c in cells if c.usual is not None and c.standings and c.best != c.usual]


def confirm(comm: Communicator, cells: Sequence[Cell], clock: Clock) -> None:
    """Race the winners against the rules once more, and enter these where they do not win again.

    What has won stays where there is no time for it, and where the cores of two ranks are no longer
    as far apart. Every rank must call it.
    """
    left = doubtful(cells)
    for number, cell in enumerate(left):
        seconds = clock.left() / (len(left) - number)
        first_rounds = _ROUNDS * sum(_TOUCHED * s.seconds for s in cell.standings[:2])
        if seconds > first_rounds and cores_are_far(comm) == cell.far:
            _race_again(comm, cell, seconds)


def _race_again(comm: Communicator, cell: Cell, seconds: float) -> None:
    assert cell.usual is not None
    buffers = Buffers(cell.kind, cell.nbytes, comm.size)
    ready = runners(comm, [cell.best, cell.usual], buffers)
    race = Race(comm, ready, buffers, ready[-1])
    for _ in range(0, _MOST_ROUNDS, _ROUNDS):
        race.rounds(_ROUNDS)
        if race.spent > seconds or race.decided():
            break
    if race.standings()[0].choice == cell.usual:
        cell.standings.sort(key=lambda standing: standing.choice != cell.usual)
