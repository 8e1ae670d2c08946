# SPDX-License-Identifier: Apache-2.0
"""A table by the cost model alone: for machines that nobody has measured, or has time to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collectives._ffi import lib, text
from collectives.machine_costs import MachineCosts
from collectives.topology.value import Topology
from collectives.tuning.candidates import candidates
from collectives.tuning.installed import HIERARCHICAL, chosen
from collectives.tuning.lines import lines
from collectives.tuning.modelled import seconds_of
from collectives.tuning.race import Standing
from collectives.tuning.table import RULE, Choice, TunedTable
from collectives.tuning.tuner import Cell
from collectives.tuning.wanted import KINDS, sizes_of

if TYPE_CHECKING:
    from collectives.communicator import Communicator

# Beyond what tune() races: to predict a longer vector takes no longer, as its tiles are alike.
_LARGER = {"memory": (256 << 20,), "tcp": (32 << 20, 256 << 20)}


class Asked(NamedTuple):
    """A plan to be predicted: for a vector of so many bytes, on near cores or far ones."""

    kind: str
    nbytes: int
    far: bool = False


def table_by_model(
    comm: Communicator, found: MachineCosts | Topology | None, machine: str, until: float
) -> TunedTable:
    """Return what the model says of the sizes that :meth:`tune` races, and beyond.

    Every rank must call it: each predicts its share, the shortest vectors first, ``until`` that
    moment of ``time.perf_counter()``. What there is no time for is left to the rules.
    """
    every = asked(comm.size, comm.transport) if found is not None else []
    best = np.full(len(every), -1)
    if found is not None:
        for i in range(comm.rank, len(every), comm.size):
            best[i] = _fastest(comm, found, every[i], until)
        # One that predicts may be a plan behind.
        patience = comm._handle.timeout + max(until - time.perf_counter(), 0.0)
        comm.allreduce(best, op="max", timeout=patience)
    return TunedTable(
        ranks=comm.size,
        machine=machine,
        library=text(lib.coll_version()),
        choices=tuple(_choices(every, best.tolist(), comm.size, comm.transport)),
        races=(),
        predicted=True,
    )


def asked(ranks: int, transport: str) -> list[Asked]:
    """Return what is predicted; of two ranks that share memory on near cores and on far ones."""
    sizes = (*sizes_of(transport), *_LARGER[transport])
    places = (False, True) if transport == "memory" and ranks == 2 else (False,)
    return [Asked(kind, nbytes, far) for nbytes in sizes for kind in KINDS for far in places]


def _fastest(comm: Communicator, found: MachineCosts | Topology, one: Asked, until: float) -> int:
    """Return the number of the best candidate; -1: it is for the rules, or time is over.

    What goes within hosts and between them is no candidate, and the model knows nothing of it.
    """
    if chosen(comm, one.kind, one.nbytes)[0].algorithm == HIERARCHICAL:
        return -1
    costs = found
    if isinstance(found, MachineCosts) and comm.size == 2:
        costs = found.placed(one.far)
    shared = comm.transport == "memory"
    least, best = np.inf, -1
    for i, choice in enumerate(candidates(one.kind, comm.size, one.nbytes, shared)):
        if time.perf_counter() > until:
            return -1
        seconds = seconds_of(costs, choice, comm.size)
        if seconds < least:
            least, best = seconds, i
    return best


def _choices(
    every: Sequence[Asked], best: Sequence[int], ranks: int, transport: str
) -> list[Choice]:
    """Return the lines that follow, as if what was predicted had won a race."""
    cells: dict[bool, list[Cell]] = {}
    for one, number in zip(every, best, strict=True):
        choice = Choice(one.kind, one.nbytes, RULE)
        if number >= 0:
            choice = candidates(one.kind, ranks, one.nbytes, transport == "memory")[number]
        cell = Cell(one.kind, one.nbytes, [Standing(choice, 0.0, 0)], one.far)
        cells.setdefault(one.far, []).append(cell)
    if len(cells) < 2:  # wherever the cores are
        return [line for of in cells.values() for line in lines(of, max(ranks, 3))]
    return [line for far, of in cells.items() for line in lines(of, ranks) if line.far == far]
