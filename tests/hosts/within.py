# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.hosts.test_within` do: groups of the ranks of one host, two on each."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import collectives as cl
from tests.hosts import values
from tests.hosts.failing import note, told

NOBODY = 65534  # another user


def shares(comm: cl.Communicator) -> list[str]:
    """Use the groups of the ranks of each host, and those across hosts; return what was wrong."""
    wrong = []
    with comm.mesh((2, 2), ("host", "rank")) as mesh:
        inside, across = mesh["rank"], mesh["host"]
        found = (comm.transport, inside.transport, across.transport)
        wrong += [] if found == ("tcp", "memory", "tcp") else [f"transports {found}"]
        for group in (inside, across):
            wrong += values.counts(group) + values.messages(group)
        alone = inside.split(inside.rank)
        assert alone is not None
        with inside.dup() as again, alone:
            wrong += values.counts(again) + values.counts(alone)
            if (again.transport, alone.transport) != ("memory", "memory"):
                wrong.append(f"transports {again.transport}, {alone.transport}")
        x = inside.empty(1 << 20, np.float32)
        x.fill(inside.rank + 1)
        inside.allreduce(x, out=x)
        if not inside.is_symmetric(x) or not (x == 3).all():
            wrong.append(f"symmetric: {x[:3]}")
    return wrong + values.counts(comm)


def loses_a_rank(comm: cl.Communicator) -> dict[str, Any]:
    """Wait for a rank of the same host, which is killed, then go on without it."""
    inside = comm.split(comm.rank // 2)
    assert inside is not None
    inside.barrier()
    note(comm, "met")
    if comm.rank == comm.size - 1:
        time.sleep(60)
    found = told(inside.barrier)
    if found["error"] is not None:
        found["left"] = float(inside.shrink().allreduce(np.ones(1))[0])
    return found


def refuses(comm: cl.Communicator, stranger: int) -> list[str]:
    """Form groups where one rank is another user's; return what was wrong."""
    inside_before = comm.split(comm.rank // 2)  # the ranks are connected
    if comm.rank == stranger:
        os.seteuid(NOBODY)
    inside = comm.split(comm.rank // 2)
    if comm.rank == stranger:
        os.seteuid(0)
    assert inside is not None
    assert inside_before is not None
    expected = "tcp" if comm.rank // 2 == stranger // 2 else "memory"
    wrong = [] if inside.transport == expected else [f"{inside.transport}, not {expected}"]
    wrong += values.counts(inside)
    with inside.dup() as again:  # that is tried anew
        wrong += [] if again.transport == "memory" else [f"again {again.transport}"]
        wrong += values.counts(again)
    return wrong
