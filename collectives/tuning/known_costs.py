# SPDX-License-Identifier: Apache-2.0
"""What the machine, or its links, cost a communicator's ranks: as probed, as kept, as usual."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from collectives._ffi import ffi, lib
from collectives.errors import InvalidArgumentError
from collectives.machine_costs import MachineCosts, usual_costs
from collectives.machine_probe import measured_costs

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.topology.value import Topology


_PROBE, _OF_BUDGET = 0.2, 0.05  # seconds at most, and the share of those that there are
_LEAST = 1e-3  # that a probe takes


def probed(comm: Communicator, budget_s: float) -> MachineCosts | Topology | None:
    """Return what the model goes by: every rank must call it, without a table. None: nothing.

    Of the budget a twentieth among ranks that share memory. Links between machines are measured as
    ``comm.topology()`` does, however long it takes, by messages, which go by TCP: of UCX, and of
    one rank alone, there is nothing.
    """
    if comm.size == 1 or comm.transport == "ucx":
        return None
    if comm.transport == "memory":
        return measured_costs(comm, min(max(_OF_BUDGET * budget_s, _LEAST), _PROBE))
    return comm.topology()


def known_costs(comm: Communicator) -> MachineCosts:
    """Return what was probed, what an earlier tune() has kept, or the usual costs.

    Whoever measured them may have had more or fewer ranks: the cores are those of these.
    """
    if comm._costs is None and comm._machine and not comm._warned_of_costs:
        comm._costs = _kept(comm)
    costs = comm._costs if comm._costs is not None else usual_costs()
    return replace(costs, cores=_shared_cores(comm))


def _kept(comm: Communicator) -> MachineCosts | None:
    """Return what an earlier tune() has kept, or warn, once, where that is of no use."""
    from collectives.tuning.kept import kept_costs
    from collectives.tuning.table import TuningWarning

    try:
        return kept_costs(comm._machine)
    except (InvalidArgumentError, OSError) as error:
        comm._warned_of_costs = True
        why = f"costs of the machine: {error}: predictions are by the usual ones; tune again"
        warnings.warn(why, TuningWarning, stacklevel=7)  # of explain()
        return None


def _shared_cores(comm: Communicator) -> int:
    """Return how many cores the ranks have between them; 0: enough, or nobody knows."""
    if comm.transport != "memory":
        return 0
    cores = ffi.new("int32_t *")
    comm._call("explain", lambda native: lib.coll_shared_cores(native, cores))
    return int(cores[0])
