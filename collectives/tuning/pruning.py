# SPDX-License-Identifier: Apache-2.0
"""Candidates that are not worth a race: those that the cost model says are far behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from collectives.machine_costs import MachineCosts
from collectives.topology.value import Topology
from collectives.tuning.modelled import predicted
from collectives.tuning.table import Choice

if TYPE_CHECKING:
    from collectives.communicator import Communicator

# Times as long as the fastest is predicted to be. In 30 cells of two ranks the plan that turned out
# to be the fastest was predicted at 1.7 times the least, at most (bench/results/prediction.json);
# in 30 of four hosts at 1.7 to 1.9 (prediction_hosts.json).
FACTOR = 2.0
_LEAST = 6  # candidates that are left
# Of more, to predict takes as long as to race: calls between machines take longer.
MOST_RANKS, MOST_HOSTS = 4, 8


def pruned(
    comm: Communicator,
    costs: MachineCosts | Topology | None,
    kind: str,
    nbytes: int,
    every: Sequence[Choice],
) -> list[Choice]:
    """Return the candidates that may be the fastest. Every rank must call it: rank 0 predicts.

    All of them where there are no ``costs`` of the machine, or of the links between machines, or
    many ranks; and whatever is not predicted.
    """
    most = MOST_HOSTS if isinstance(costs, Topology) else MOST_RANKS
    if costs is None or comm.size > most or len(every) <= _LEAST:
        return list(every)
    stays = np.ones(len(every), np.uint8)
    if comm.rank == 0:
        by_time = predicted(costs, kind, nbytes, comm.size)
        limit = FACTOR * by_time[0].seconds
        behind = {one.choice for one in by_time[_LEAST:] if one.seconds > limit}
        stays[:] = [choice not in behind for choice in every]
    comm.broadcast(stays, root=0)
    return [choice for choice, is_good in zip(every, stays, strict=True) if is_good]
