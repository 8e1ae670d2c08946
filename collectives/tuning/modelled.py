# SPDX-License-Identifier: Apache-2.0
"""Which plan the cost models say is the fastest: a choice for what nobody has measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from collectives.errors import InvalidArgumentError
from collectives.machine_costs import MachineCosts
from collectives.prediction import predict, predict_wire
from collectives.topology.value import Topology
from collectives.tuning.candidates import candidates
from collectives.tuning.table import Choice

if TYPE_CHECKING:
    from collectives.communicator import Communicator

# Bytes from which on a call is looked at alone, as races do. Short calls may follow one another at
# once, or not: what is good at the one only, as a chain is, can be bad at the other.
ALONE = 64 << 10
# Of staged vectors from so many bytes on all ranks first wait for all (native/select/choose.cc).
_AGREED_BY_TWO, _AGREED = 8 << 10, 64 << 10
_PACE = 4  # of every plan for the wire (native/select/choose_wire.cc)
_KEPT = 4096  # choices


@dataclass(frozen=True)
class Predicted:
    """A plan that a call could run, and the seconds that it is predicted to take.

    Of vectors below 64 KiB: the geometric mean of those of a call alone, and of one call after
    another.
    """

    choice: Choice
    seconds: float


def predicted(
    costs: MachineCosts | Topology | str, kind: str, nbytes: int, p: int
) -> list[Predicted]:
    """Return the prediction of every candidate, the fastest first; equal ones stay in their order.

    ``costs`` are those of a machine whose memory ``p`` ranks share, with their cores far apart
    where that is what was measured; or the topology of a network, also in words ("hosts:4x1,
    gbit=1"; docs/simulate.md), of ranks that share none. Milliseconds for up to 16 ranks, of more
    it may be seconds.

    Raises:
        InvalidArgumentError: ``costs`` are neither, there is no such collective, a number is none,
            or the network has fewer than ``p`` ranks.
    """
    if not isinstance(costs, MachineCosts | Topology | str):
        raise InvalidArgumentError(
            f"modelled: costs is a {type(costs).__name__}: give the MachineCosts of a machine, "
            "or a Topology"
        )
    every = candidates(kind, p, nbytes, isinstance(costs, MachineCosts))
    if not every:
        raise InvalidArgumentError(
            f"modelled: no algorithm of {kind} is defined for {p!r:.40} ranks"
        )
    found = [Predicted(choice, seconds_of(costs, choice, p)) for choice in every]
    return sorted(found, key=lambda one: one.seconds)


def modelled(costs: MachineCosts | Topology | str, kind: str, nbytes: int, p: int) -> Choice:
    """Return the plan that is predicted to be the fastest, as :func:`predicted` says. Cached.

    A function of its arguments alone, and of what a file holds that is named: ranks with equal
    costs choose alike.
    """
    if isinstance(costs, str) and costs.endswith(".json"):
        costs = Topology.load(costs)
    return _modelled(costs, kind, nbytes, p)


@lru_cache(maxsize=_KEPT)
def _modelled(costs: MachineCosts | Topology | str, kind: str, nbytes: int, p: int) -> Choice:
    return predicted(costs, kind, nbytes, p)[0].choice


def agreed(
    comm: Communicator, costs: MachineCosts | Topology | str, kind: str, nbytes: int
) -> Choice:
    """Return the plan that rank 0 predicts to be the fastest, on all ranks. Every rank calls it.

    Costs of other ranks do not count.

    Raises:
        InvalidArgumentError: on all ranks, where rank 0 cannot predict: its ``costs`` are those of
            a network where ranks share memory, or the other way round, or as :func:`predicted`.
    """
    every = candidates(kind, comm.size, nbytes, comm.transport == "memory")
    number = np.full(1, -1)
    error: Exception | None = None
    if comm.rank == 0:
        try:
            number[0] = _place(every, costs, kind, nbytes, comm)
        except Exception as caught:  # the others are waiting for what rank 0 says
            error = caught
    comm.broadcast(number, root=0)
    if error is not None:
        raise error
    if number[0] < 0:
        raise InvalidArgumentError("modelled: rank 0 could not predict; its own error says why")
    return every[int(number[0])]


def _place(
    every: list[Choice],
    costs: MachineCosts | Topology | str,
    kind: str,
    nbytes: int,
    comm: Communicator,
) -> int:
    if isinstance(costs, MachineCosts) != (comm.transport == "memory"):
        raise InvalidArgumentError(
            f"modelled: costs is a {type(costs).__name__}, and ranks exchange bytes by "
            f"{comm.transport}: give a MachineCosts where they share memory, else a Topology"
        )
    return every.index(modelled(costs, kind, nbytes, comm.size))


def wire_seconds(links: Topology | str, choice: Choice, p: int, alone: bool = True) -> float:
    """Return the seconds that a plan between machines is predicted to take on these links."""
    return predict_wire(
        links,
        choice.kind,
        choice.algorithm,
        choice.nbytes,
        p,
        lag=choice.lag,
        tile_bytes=choice.tile_bytes,
        pace=_PACE,
        alone=alone,
    )


def seconds_of(costs: MachineCosts | Topology | str, choice: Choice, p: int) -> float:
    """Return the seconds that a plan is predicted to take, as :class:`Predicted` has them."""
    alone = _seconds(costs, choice, p, alone=True)
    if choice.nbytes >= ALONE:
        return alone
    return math.sqrt(alone * _seconds(costs, choice, p, alone=False))


def _seconds(costs: MachineCosts | Topology | str, choice: Choice, p: int, alone: bool) -> float:
    if isinstance(costs, MachineCosts):
        return _in_memory(costs, choice, p, alone)
    return wire_seconds(costs, choice, p, alone)


def _in_memory(costs: MachineCosts, choice: Choice, p: int, alone: bool) -> float:
    agrees = choice.mode == "staged" and choice.nbytes >= (_AGREED_BY_TWO if p == 2 else _AGREED)
    far = costs.far.measured
    return predict(
        costs,
        choice.kind,
        choice.algorithm,
        choice.nbytes,
        p,
        mode=choice.mode,
        lag=choice.lag,
        tile_bytes=choice.tile_bytes,
        far=far,
        streams=far and agrees,
        agrees=agrees,
        alone=alone,
    )
