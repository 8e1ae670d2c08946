# SPDX-License-Identifier: Apache-2.0
"""What every rank program does: it meets the driver, prepares cells and measures blocks."""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.peers.channel import Message, connect
from bench.peers.ranks.lineup import LineUp
from bench.peers.ranks.work import Bound, Buffers, RefusedError, Work

# Where launchers write (rank, size): collrun, Open MPI, MPICH and Intel MPI, torchrun.
_LAUNCHERS = (
    ("COLLECTIVES_RANK", "COLLECTIVES_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("RANK", "WORLD_SIZE"),
)

Binder = Callable[[Work], Bound]
Orders = dict[str, Callable[..., tuple[Message, bytes]]]


@dataclass(frozen=True)
class Station:
    """Where this rank stands: its number, its team, and where the driver and the team meet."""

    rank: int
    ranks: int
    shared_cores: bool
    way: str
    meet: str
    lineup: str


def station() -> Station:
    """Read the command line and the launcher's variables; bind this process to its core.

    With --free it stays unbound: ranks of several hosts share cores in a benchmark only.
    Call it before a library is imported, so that the library's threads are bound too.
    """
    parser = argparse.ArgumentParser(description="A rank of bench.peers, which starts it.")
    parser.add_argument("way", help="of the library: a thread level, a variant of our calls")
    parser.add_argument("meet", help="socket of the driver")
    parser.add_argument("lineup", help="file for LineUp")
    parser.add_argument("--free", action="store_true", help="stay on no core")
    chosen = parser.parse_args()
    for rank_name, size_name in _LAUNCHERS:
        if rank_name in os.environ:
            rank, ranks = int(os.environ[rank_name]), int(os.environ[size_name])
            break
    else:
        parser.error("no launcher's variables found")
    cores = sorted(os.sched_getaffinity(0))
    if not chosen.free:
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    shared = ranks > len(cores)
    return Station(rank, ranks, shared, chosen.way, chosen.meet, chosen.lineup)


class Server:
    """A rank's present cell, and what the driver can ask of it."""

    def __init__(self, place: Station, bind: Binder) -> None:
        self._place = place
        self._bind = bind
        self._lineup = LineUp(place.lineup, place.rank, place.ranks, place.shared_cores)
        self._bound: Bound | None = None
        self._buffers: Buffers | None = None
        self._turn = 0

    @property
    def orders(self) -> Orders:
        """What the driver can ask for, by name."""
        return {"prepare": self.prepare, "measure": self.measure, "flow": self.flow}

    def prepare(self, kind: str, dtype: str, nbytes: int) -> tuple[Message, bytes]:
        """Make a cell the present one; {"refused": why} where the library lacks it."""
        self._bound = self._buffers = None  # large ones first make room
        work = Work(kind, dtype, nbytes, self._place.ranks, self._place.rank)
        try:
            self._bound = bound = self._bind(work)
        except RefusedError as refusal:
            return {"refused": str(refusal)}, b""
        self._buffers = Buffers(work, bound.x, bound.out)
        return {}, b""

    def measure(self, calls: int, warm: int) -> tuple[Message, bytes]:
        """Time `calls` calls after `warm` others; the payload is the seconds of each."""
        assert self._bound is not None
        assert self._buffers is not None
        durations, wrong = np.empty(calls + warm), 0
        clock, call, wait = time.perf_counter, self._bound.call, self._lineup.wait
        fill, check, turn = self._buffers.fill, self._buffers.wrong, self._turn
        start = clock()
        for i in range(calls + warm):
            fill(turn + i)
            wait()
            begin = clock()
            call()
            durations[i] = clock() - begin
            wrong += check(turn + i)
        self._turn += calls + warm
        answer = {"wrong": wrong, "seconds": clock() - start}
        return answer, durations[warm:].tobytes()

    def flow(self, calls: int, drain: int) -> tuple[Message, bytes]:
        """Make `drain` calls and `calls` others without a pause; then check the result of one more.

        In place the values grow without end meanwhile, which costs no addition more.
        """
        assert self._bound is not None
        assert self._buffers is not None
        clock, call = time.perf_counter, self._bound.call
        self._buffers.fill(self._turn)
        self._lineup.wait()
        for _ in range(drain):
            call()
        first = clock()
        for _ in range(calls):
            call()
        last = clock()
        checked, _ = self.measure(1, 0)
        return {"first": first, "last": last, "wrong": checked["wrong"]}, b""


def serve(place: Station, version: str, bind: Binder) -> None:
    """Make the calls that the driver asks for until it goes away."""
    attend(place, version, Server(place, bind).orders)


def attend(place: Station, version: str, orders: Orders) -> None:
    """Do what the driver says until it goes away."""
    channel = connect(place.meet)
    channel.send({"rank": place.rank, "process": os.getpid(), "version": version})
    gc.collect()
    gc.disable()  # it would run at the expense of one call of some library
    try:
        while (received := channel.receive()) is not None:
            order = received[0]
            message, payload = orders[order.pop("order")](**order)
            channel.send(message, payload)
    finally:
        channel.close()
