# SPDX-License-Identifier: Apache-2.0
"""Measures what this machine costs the ranks of a communicator."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from collectives._ffi import ffi, lib
from collectives.machine_costs import MachineCosts, costs_of
from collectives.prediction import predict

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_CALLS = 64  # of which the fastest quarter counts
_MOST_RANKS = 16  # of which a short call is one round (native/select/choose.cc)


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
    return _with_call(comm, costs_of(machine))


def _with_call(comm: Communicator, costs: MachineCosts) -> MachineCosts:
    """Return the costs with what a call takes besides its plan: what that of 8 bytes leaves.

    Ranks that share a core wait for it, which hides the rest.
    """
    if costs.cores or not 2 <= comm.size <= _MOST_RANKS:
        return costs
    x, taken = np.zeros(2, np.float32), np.empty(_CALLS)
    for i in range(_CALLS):
        begin = time.perf_counter()
        comm.allreduce(x)
        taken[i] = time.perf_counter() - begin
    plan = predict(
        replace(costs, call=0.0),
        "allreduce",
        "direct_one_shot",
        x.nbytes,
        comm.size,
        mode="inline",
        lag=0,
        far=costs.far.measured,
    )
    call = np.array([max(float(np.quantile(taken, 0.25)) - plan, 0.0)])
    comm.broadcast(call, root=0)
    return replace(costs, call=float(call[0]))
