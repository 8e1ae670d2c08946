# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.hosts.test_streams` do."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import collectives as cl
from tests.hosts.failing import LARGE, living_on, note, told

LENGTHS = (0, 1, 5, 1000, 65_536, 262_145, 1_000_003)  # elements


def digests(comm: cl.Communicator) -> list[str]:
    """Return a hash of every result: of sums, whose bits depend on their order, and of messages."""
    found: list[str] = []

    def keep(result: Any) -> None:
        found.append(hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest())

    for n in LENGTHS:
        x = np.random.default_rng(comm.rank).standard_normal(n, np.float32)
        keep(comm.allreduce(x))
        keep(comm.broadcast(x, root=n % comm.size))
        keep(comm.allgather(x))
        keep(comm.alltoall(np.resize(x, n // comm.size * comm.size)))
        keep(comm.scan(x))
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        keep(comm.sendrecv(x, right, np.empty_like(x), left))
    return found


def until_lost(comm: cl.Communicator) -> Any:
    """Call, and send, until something goes wrong, then go on with those that live."""
    comm.allreduce(np.ones(1))
    note(comm, "met")
    x = np.ones(4 * LARGE, np.float32)

    def call() -> None:
        for _ in range(100_000):
            comm.allreduce(x)
            right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            comm.sendrecv(x, right, np.empty_like(x), left)

    return told(call) | living_on(comm)
