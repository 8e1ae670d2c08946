# SPDX-License-Identifier: Apache-2.0
"""A table by the cost model alone: for machines that nobody has measured, or has time to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from collectives._ffi import lib, text
from collectives.errors import UnsupportedError
from collectives.machine_costs import MachineCosts
from collectives.machine_probe import measured_costs
from collectives.topology.value import Topology
from collectives.tuning.lines import lines
from collectives.tuning.modelled import modelled
from collectives.tuning.race import Standing
from collectives.tuning.table import Choice, TunedTable
from collectives.tuning.tuner import Cell
from collectives.tuning.wanted import KINDS, sizes_of

if TYPE_CHECKING:
    from collectives.communicator import Communicator


def probed(comm: Communicator, budget_s: float) -> MachineCosts | Topology | None:
    """Return what the model goes by: every rank must call it. None: one rank alone has no choice.

    Among ranks that share memory ``budget_s`` is about what it takes; links between machines are
    measured as ``comm.topology()`` does, by messages, which go by TCP.
    """
    if comm.transport == "ucx":
        raise UnsupportedError(
            "use_model: bytes go by UCX between these machines, whose links are not measured: "
            "tune() races, and needs no model"
        )
    if comm.size == 1:
        return None
    with comm.dup() as apart:
        if comm.transport == "memory":
            return measured_costs(apart, budget_s)
        return apart.topology()


def table_of(
    found: MachineCosts | Topology | None, ranks: int, machine: str, transport: str
) -> TunedTable:
    """Return what the model says of the sizes that :meth:`tune` races. Local."""
    choices = () if found is None else tuple(_choices(found, ranks, sizes_of(transport)))
    return TunedTable(
        ranks=ranks, machine=machine, library=text(lib.coll_version()), choices=choices, races=()
    )


def _choices(found: MachineCosts | Topology, ranks: int, sizes: Sequence[int]) -> Iterator[Choice]:
    """Give the lines of near cores, and of far ones; of more than two ranks, where these are."""
    if ranks > 2 or not isinstance(found, MachineCosts):
        yield from lines(_cells(found, ranks, sizes, False), max(ranks, 3))
        return
    for far in (False, True):
        made = lines(_cells(found.placed(far), ranks, sizes, far), ranks)
        yield from (choice for choice in made if choice.far == far)


def _cells(
    costs: MachineCosts | Topology, ranks: int, sizes: Sequence[int], far: bool
) -> list[Cell]:
    """Return each size with the plan that is predicted to be the fastest, as if it had won."""
    return [
        Cell(kind, nbytes, [Standing(modelled(costs, kind, nbytes, ranks), 0.0, 0)], far)
        for kind in KINDS
        for nbytes in sizes
    ]
