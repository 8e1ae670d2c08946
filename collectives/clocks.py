# SPDX-License-Identifier: Apache-2.0
"""One clock for all ranks: what the clocks of other machines show when that of rank 0 shows 0.

CLOCK_MONOTONIC is one clock for all processes of a machine. Between machines two ranks tell each
other the time, again and again; the answer to a message that was short on its way tells best.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from collectives.words import gathered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collectives.communicator import Communicator

_TRIPS, _BEST = 24, 5


@dataclass(frozen=True)
class Offset:
    """What is to be added to a rank's clock to have that of rank 0, and how far off it may be.

    All in nanoseconds; ``at``: what the rank's clock showed when it was found.
    """

    at: int
    add: int
    uncertainty: int


def clock() -> str:
    """Return what tells the clock of this process from others: the boot, and its time namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # then each process has a clock of its own, as far as we see
        return f"process {os.getpid()}"
    try:
        return f"{boot} {os.readlink('/proc/self/ns/time_for_children')}"
    except OSError:  # a kernel without such namespaces
        return boot


def offsets(comm: Communicator, clocks: Sequence[str]) -> list[Offset]:
    """Find the offset of every rank, ``clocks`` by rank. Every rank calls it; all get the same.

    The first rank of each other clock asks rank 0, one after the other.
    """
    first = {name: clocks.index(name) for name in clocks}
    found = np.zeros((comm.size, 3), np.int64)
    for rank in sorted(first.values()):
        if rank == 0:
            continue
        if comm.rank == rank:
            found[rank] = asked(comm)
        elif comm.rank == 0:
            _answer(comm, rank)
    comm.allreduce(found)
    times = [int(found[first[name], 0]) or time.monotonic_ns() for name in clocks]
    return [
        Offset(at, int(found[first[name], 1]), int(found[first[name], 2]))
        for at, name in zip(times, clocks, strict=True)
    ]


def seconds_to_rank_0(comm: Communicator) -> float:
    """Return what to add to time.perf_counter() to have that of rank 0. Every rank must call it."""
    if comm.transport == "memory":
        return 0.0
    names = [name.decode() for name in gathered(comm, clock().encode())]
    return offsets(comm, names)[comm.rank].add * 1e-9


def asked(comm: Communicator) -> tuple[int, int, int]:
    """Ask rank 0 for the time; return what this clock shows, what to add, and how sure that is."""
    trips = []
    question, answer = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for _ in range(_TRIPS):
        begin = time.monotonic_ns()
        comm.sendrecv(question, 0, answer, 0)
        trips.append((begin, int(answer[0]), time.monotonic_ns()))
    return time.monotonic_ns(), *best(trips)


def _answer(comm: Communicator, rank: int) -> None:
    question = np.zeros(1, np.int64)
    for _ in range(_TRIPS):
        comm.recv(question, rank)
        comm.send(np.array([time.monotonic_ns()]), rank)


def best(trips: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """Return what to add to a clock, and how far off that may be, in nanoseconds.

    Of each trip: when it began, what the other clock showed on the way, and when it was back. The
    shortest count: the median of what they say. None of them can be off by more than half of
    its trip.
    """
    shortest = sorted(trips, key=lambda trip: trip[2] - trip[0])[:_BEST]
    add = round(median(there - (begin + end) / 2 for begin, there, end in shortest))
    return add, max(end - begin for begin, _, end in shortest) // 2
