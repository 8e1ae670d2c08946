# SPDX-License-Identifier: Apache-2.0
"""Ranks for pytest-benchmark: this process is rank 0, and its peers repeat each of its calls.

pytest-benchmark decides how often a case is called, so the peers cannot count: before every call
rank 0 broadcasts what comes next. Started as a program, this module is one of those peers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from collectives import Communicator
from collectives.cli.worker import pin_to_core
from collectives.environment import ATTEMPT, JOB, RANK, SIZE, Place, place
from collectives.exact import Buffers, Workload
from collectives.measure import Contender, bind
from collectives.start import join

_STOP, _CASE, _CALL = range(3)
_TIMEOUT_S = 60.0


class Station:
    """One rank's side: the present case, its buffers and its call."""

    def __init__(self, comm: Communicator) -> None:
        """Wait for a case."""
        self.comm = comm
        self.buffers: Buffers
        self.call: Callable[[], None]

    def tell(self, order: int, argument: int) -> tuple[int, int]:
        """Give every rank rank 0's order."""
        message = np.array([order, argument], np.int64)
        self.comm.broadcast(message)
        return int(message[0]), int(message[1])

    def take(self, case: bytes, length: int) -> None:
        """Give every rank rank 0's case, `length` bytes of JSON, and make it the present one."""
        text = np.frombuffer(case, np.uint8).copy() if case else np.empty(length, np.uint8)
        self.comm.broadcast(text)
        load, contender = json.loads(text.tobytes())
        self.buffers = Buffers(Workload(**load), self.comm.rank, self.comm.size)
        self.call = bind(self.comm, self.buffers, Contender(**contender))

    def prepare(self, turn: int) -> None:
        """Fill the buffers and line up."""
        self.buffers.fill(turn)
        self.comm.barrier()


class Team:
    """Rank 0 and the processes of its peers. Use it with :meth:`close`."""

    def __init__(self, size: int) -> None:
        """Start the peers and meet them. One core per rank where there are enough."""
        job = f"bench-{os.getpid()}-{time.monotonic_ns()}"
        self._cores = os.sched_getaffinity(0)
        common = os.environ | {SIZE: str(size), JOB: job, ATTEMPT: "0"}
        self._peers = [
            subprocess.Popen([sys.executable, "-m", "bench.team"], env=common | {RANK: str(rank)})
            for rank in range(1, size)
        ]
        if size <= len(self._cores):
            pin_to_core(0)
        try:
            self._station = Station(join(Place(0, size, job), _TIMEOUT_S))
        except BaseException:
            self._end_peers()
            raise
        self._turn = 0
        self.wrong = 0

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._station.comm.size

    def begin(self, load: Workload, contender: Contender) -> Callable[[], None]:
        """Start a case; return the call that is to be timed."""
        case = json.dumps([asdict(load), asdict(contender)]).encode()
        self._station.tell(_CASE, len(case))
        self._station.take(case, len(case))
        self.wrong = 0
        return self._station.call

    def before(self) -> None:
        """Prepare every rank for one call."""
        self._turn += 1
        self._station.tell(_CALL, self._turn)
        self._station.prepare(self._turn)

    def after(self) -> None:
        """Check the result of this rank."""
        self.wrong += self._station.buffers.wrong(self._turn)

    def close(self) -> None:
        """Send the peers home. Raises RuntimeError when one of them saw a wrong result."""
        try:
            self._station.tell(_STOP, 0)
            codes = [peer.wait(timeout=_TIMEOUT_S) for peer in self._peers]
            self._station.comm.close()
        finally:
            self._end_peers()
        if any(codes):
            raise RuntimeError(f"the peers ended with exit codes {codes}")

    def _end_peers(self) -> None:
        """Leave no process behind, and this one where it was."""
        os.sched_setaffinity(0, self._cores)
        for peer in self._peers:
            peer.kill()  # of no effect on one that has ended
            peer.wait()


def peer() -> None:
    """Do what rank 0 says until it says stop."""
    mine = place()
    if mine.size <= len(os.sched_getaffinity(0)):
        pin_to_core(mine.rank)
    station, wrong = Station(join(mine, _TIMEOUT_S)), 0
    while True:
        order, argument = station.tell(_STOP, 0)
        if order == _STOP:
            break
        if order == _CASE:
            station.take(b"", argument)
            continue
        station.prepare(argument)
        station.call()
        wrong += station.buffers.wrong(argument)
    station.comm.close()
    if wrong:
        sys.exit(f"rank {mine.rank}: {wrong} wrong elements")


if __name__ == "__main__":
    peer()
