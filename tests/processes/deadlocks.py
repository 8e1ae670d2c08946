# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_deadlocks` do: they wait for each other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import collectives as cl
from collectives.environment import ATTEMPT

Call = Callable[[cl.Communicator], Any]

LONG = 100_000


def ones(n: int = 8) -> Any:
    return np.ones(n)


def sent_behind(c: cl.Communicator) -> None:
    """Send when the collective in flight is done, and not before."""
    flight = c.allreduce(ones(), async_op=True)
    c.send(ones(), 0)
    flight.wait()


def other_message(c: cl.Communicator) -> None:
    """Send one with a tag that nobody asks for."""
    c.isend(ones(LONG), 0, tag=9)
    c.barrier()


# What rank 0 does, what the others do, and words of the text.
CASES: dict[str, tuple[Call, Call, tuple[str, ...]]] = {
    "recv": (
        lambda c: c.recv(ones(), 1, tag=3),
        lambda c: c.allreduce(ones()),
        ("recv from rank 1 (tag 3): ", "rank 1 in allreduce #1, allreduce of 8 float64 (sum, "),
    ),
    "recv of any": (
        lambda c: c.recv(ones()),
        lambda c: c.barrier(),
        ("recv from any rank (any tag): ", "rank 1 in barrier #1"),
    ),
    "wait": (
        lambda c: c.irecv(ones(), 1, tag=3).wait(),
        lambda c: c.allgather(ones()),
        ("recv from rank 1 (tag 3): ", "rank 1 in allgather #1"),
    ),
    "probe": (
        lambda c: c.probe(1),
        lambda c: c.broadcast(ones(), root=0),
        ("probe of rank 1 (any tag): ", "rank 1 in broadcast #1"),
    ),
    "in flight": (
        lambda c: c.recv(ones(), 1),
        sent_behind,
        ("recv from rank 1 (any tag): ", "rank 1 in allreduce #1"),
    ),
    "sparse": (
        lambda c: c.recv(ones(), 1),
        lambda c: c.allreduce(cl.Sparse(np.array([3, 1]), np.ones(2), 64)),
        ("recv from rank 1 (any tag): ", "rank 1 in sparse allreduce #1"),
    ),
    "another message": (
        lambda c: c.recv(ones(), 1, tag=3),
        other_message,
        ("recv from rank 1 (tag 3): ", "rank 1 in barrier #1"),
    ),
}
SENDS: dict[str, tuple[Call, Call, tuple[str, ...]]] = {
    "send": (
        lambda c: c.send(ones(LONG), 1, tag=3),
        lambda c: c.allreduce(ones()),
        ("send to rank 1 (tag 3): ", "rank 1 in allreduce #1", "has no receive for it"),
    ),
}


def stand_still() -> dict[str, Any]:
    """Run all cases, each in an attempt of its own; return what this rank was told."""
    told = {}
    for attempt, (name, (mine, theirs, _)) in enumerate((CASES | SENDS).items(), 1):
        os.environ[ATTEMPT] = str(attempt)
        comm = cl.init(timeout=20)
        begin = time.monotonic()
        told[name] = told_by(comm, mine if comm.rank == 0 else theirs)
        told[name]["seconds"] = time.monotonic() - begin
        comm.close()
    return told


def told_by(comm: cl.Communicator, call: Call) -> dict[str, Any]:
    """Make a call; return what it ends with."""
    try:
        call(comm)
    except cl.CollectiveError as error:
        return {"error": type(error).__name__, "text": str(error), "rank": error.rank}
    return {"error": None, "text": "", "rank": None}
