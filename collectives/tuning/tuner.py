# SPDX-License-Identifier: Apache-2.0
"""How a communicator is tuned: which sizes are raced, for how long, and what becomes of it.

At each size all candidates that the cost model does not rule out run a few rounds, the slow ones
drop out (successive halving), and those that are left race until their order is certain or their
time is over. In the end what is faster than the rules has to show it again (``confirming``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from collectives.machine_costs import MachineCosts
from collectives.tuning.candidates import candidates
from collectives.tuning.confirming import SHARE, confirm
from collectives.tuning.installed import HIERARCHICAL, chosen
from collectives.tuning.placement import cores_are_far
from collectives.tuning.pruning import pruned
from collectives.tuning.race import Buffers, Race, Standing, runners
from collectives.tuning.table import Choice

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.topology.value import Topology

_HALVINGS = ((2, 2.0, 12), (3, 1.4, 6), (4, 1.2, 4))  # rounds, then those within, at most so many
_SHORT = 64 << 10  # bytes: shorter vectors take little longer for being longer
_FEWEST = 4  # candidates of a size
NEAR_BEHIND = 1.5  # at one size, of what is tried at the next
_LAST = 8  # rounds between two looks at the survivors


@dataclass
class Cell:
    """One collective on one size of vector, and how its candidates stand.

    ``far``: two ranks had cores that share no cache; None: they were moved meanwhile.
    ``hasty``: time was over before all rounds were. ``usual``: what the rules run, where it raced.
    """

    kind: str
    nbytes: int
    standings: list[Standing] = field(default_factory=list)
    far: bool | None = False
    hasty: bool = False
    usual: Choice | None = None

    @property
    def best(self) -> Choice:
        """The fastest candidate."""
        return self.standings[0].choice


class Clock:
    """Time that all ranks agree on: that of rank 0."""

    def __init__(self, comm: Communicator, budget: float) -> None:
        """Begin now; every rank must."""
        self._comm, self._begin, self._budget = comm, time.perf_counter(), budget

    def left(self) -> float:
        """Return the seconds that are left on rank 0. Every rank must call it."""
        left = np.array([self._budget - (time.perf_counter() - self._begin)])
        self._comm.broadcast(left, root=0)
        return float(left[0])


def tuned(
    comm: Communicator,
    kinds: Sequence[str],
    sizes: Sequence[int],
    budget: float,
    costs: MachineCosts | Topology | None = None,
    known: Sequence[Cell] = (),
) -> list[Cell]:
    """Race at every size, and return the cells for which there was time. Every rank must.

    ``costs`` of the machine, or of links between machines: what they rule out is not raced. Nor is
    what is ``known``, unless it was hasty.

    Small vectors come first: where time runs out, and what would take more of it than there is, is
    left to the library.
    """
    if comm.size == 1:  # all plans are one copy
        return []
    clock = Clock(comm, budget)
    kept_back = SHARE * max(clock.left(), 0.0)
    there = {(cell.kind, cell.nbytes): cell for cell in known}
    cells = [there.get((kind, n)) or Cell(kind, n, hasty=True) for n in sizes for kind in kinds]
    before: dict[str, Cell] = {}
    far = cores_are_far(comm)
    over, first = False, not known  # at least one is raced
    for number, cell in enumerate(cells):
        if cell.hasty and not over:
            left = clock.left() - kept_back
            over = left <= 0 and not first
            if not over and (first or left >= _least(cell, before.get(cell.kind))):
                later = sum(_weight(other) for other in cells[number:] if other.hasty)
                share = left * _weight(cell) / later
                far = _race_placed(comm, cell, before.get(cell.kind), share, costs, far)
                first = False
        if cell.standings:
            before[cell.kind] = cell
    confirm(comm, cells, clock)
    return [cell for cell in cells if cell.standings]


def _race_placed(
    comm: Communicator,
    cell: Cell,
    before: Cell | None,
    seconds: float,
    costs: MachineCosts | Topology | None,
    far: bool,
) -> bool:
    """Race a cell, once more where the cores were moved meanwhile; return whether they are far."""
    for _ in range(2):
        placed = costs.placed(far) if isinstance(costs, MachineCosts) else costs
        race_cell(comm, cell, before, seconds, comm.transport == "memory", placed, far=far)
        then, far = far, cores_are_far(comm)
        cell.far = far if far == then else None
        if cell.far is not None or cell.hasty:
            break
    return far


def _least(cell: Cell, before: Cell | None, plans: int = _FEWEST) -> float:
    """Return the seconds that the first rounds of so many plans take, by those of the size before.

    Buffers are touched between calls, which takes about as long as these.
    """
    if before is None:
        return 0.0
    growth = (cell.nbytes + _SHORT) / (before.nbytes + _SHORT)
    fastest = growth * before.standings[0].seconds
    return (1 + _HALVINGS[0][0]) * 2 * fastest * plans


def _weight(cell: Cell) -> float:
    """Long vectors take longer, but no more rounds are needed for them."""
    return 1.0 + cell.nbytes / (8 << 20)


def race_cell(
    comm: Communicator,
    cell: Cell,
    before: Cell | None,
    seconds: float,
    shared: bool,
    costs: MachineCosts | Topology | None = None,
    *,
    far: bool = False,
    impartial: bool = False,
) -> None:
    """Find how the candidates of a cell stand, in about so many seconds.

    What the library runs by its rules, on cores that are near or ``far``, has won unless another
    plan is faster beyond doubt; ``impartial``: whichever seems the fastest has.
    """
    usual = replace(chosen(comm, cell.kind, cell.nbytes, far)[0], far=False)
    entered = pruned(
        comm, costs, cell.kind, cell.nbytes, _entered(comm, cell, before, shared, seconds, usual)
    )
    if usual not in entered and usual.algorithm != HIERARCHICAL:
        entered.append(usual)
    cell.usual = None if usual.algorithm == HIERARCHICAL else usual
    buffers = Buffers(cell.kind, cell.nbytes, comm.size)
    ready = runners(comm, entered, buffers)
    of_rules = next((runner for runner in ready if runner.choice == usual), None)
    race = Race(comm, ready, buffers, None if impartial else of_rules)
    for rounds, factor, most in _HALVINGS:
        race.rounds(rounds)
        race.keep_within(factor, most)
        if race.spent > seconds:
            break
    else:
        cell.hasty = False
    while len(race.running) > 1 and race.spent < seconds and not race.decided():
        race.rounds(_LAST)
        race.keep_within(1.5, len(race.running))
    cell.standings = race.standings()


def _entered(
    comm: Communicator,
    cell: Cell,
    before: Cell | None,
    shared: bool,
    seconds: float,
    usual: Choice,
) -> list[Choice]:
    """Return the candidates, and what is ``usual``: what the library would run by its rules.

    Of long vectors those that were not far behind at the size before, as many as there is time for.
    """
    every = candidates(cell.kind, comm.size, cell.nbytes, shared)
    if usual not in every and usual.algorithm != HIERARCHICAL:
        every.insert(0, usual)
    if before is None or cell.nbytes < (1 << 20 if shared else 64 << 10):
        return every
    limit = NEAR_BEHIND * before.standings[0].seconds
    good = {s.choice.algorithm for s in before.standings if s.seconds <= limit}
    good.add(usual.algorithm)
    left = [choice for choice in every if choice.algorithm in good]
    most = max(int(_FEWEST * seconds / max(_least(cell, before), 1e-9)), _FEWEST)
    places = {_how(s.choice): i for i, s in enumerate(before.standings)}
    places[_how(usual)] = -1
    return sorted(left, key=lambda choice: places.get(_how(choice), len(places)))[:most]


def _how(choice: Choice) -> Choice:
    return replace(choice, nbytes=0)
