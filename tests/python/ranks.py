# SPDX-License-Identifier: Apache-2.0
"""A group of threads for the length of one test."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import collectives as cl
from collectives.environment import Place
from collectives.launchers import wire
from collectives.start import join
from tests.python.conftest import run_threads


def on_ranks(p: int, work: Callable[[cl.Communicator], Any], *, timeout: float = 20) -> list[Any]:
    """Run ``work`` on every rank of a new group; return what they return."""
    with ExitStack() as stack:
        comms = cl.local(p, timeout=timeout)
        for comm in comms:
            stack.callback(comm.close)
        return run_threads(comms, work)


def last(comm: cl.Communicator) -> cl.LastCall:
    """Return what the last collective was; there was one."""
    told = comm.last
    assert told is not None
    return told


def on_wired_ranks(p: int, work: Callable[[cl.Communicator], Any]) -> list[Any]:
    """Do the same with ranks that take themselves for ranks of ``p`` machines: TCP at loopback."""
    listeners = [wire.listen("127.0.0.1") for _ in range(p)]
    doors = [wire._text_of(listener) for listener in listeners]
    hosts = [f"host{rank}" for rank in range(p)]
    with ExitStack() as stack:
        comms = []
        for rank, listener in enumerate(listeners):
            ways = wire.Wire(listener, doors, hosts, bytes(32), shares_cores=True)
            comms.append(join(Place(rank, p, "tests", 0, 20.0, wire=ways)))
        # At once, as each waits a moment for the others.
        stack.callback(run_threads, comms, lambda comm: comm.close())
        return run_threads(comms, work)
