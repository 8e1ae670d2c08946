# SPDX-License-Identifier: Apache-2.0
"""Measures what this machine costs the ranks of a communicator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectives._ffi import ffi, lib
from collectives.machine_costs import MachineCosts, costs_of

if TYPE_CHECKING:
    from collectives.communicator import Communicator


def measured_costs(comm: Communicator, budget_s: float = 0.2) -> MachineCosts:
    """Return what the machine costs, the same on all ranks, after about ``budget_s`` seconds.

    Every rank must call it, with the same budget (0.001 to 60 s); the ranks must share memory.

    Raises:
        InvalidArgumentError: the budget is none.
        UnsupportedError: the ranks are on several machines.
        TimeoutError: a rank did not come.
    """
    machine = ffi.new("coll_machine *")
    comm.barrier()
    comm._handle.call("probe", lib.coll_measure_machine, float(budget_s), machine, ffi.NULL)
    comm.barrier()
    return costs_of(machine)
