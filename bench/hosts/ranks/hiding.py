# SPDX-License-Identifier: Apache-2.0
"""A rank of ``bench.hosts.hiding``: transfers, NumPy that computes, and both at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import collectives as cl
from bench.peers.channel import Message
from bench.peers.ranks.lineup import LineUp
from bench.peers.ranks.serve import Station, attend, station
from bench.peers.ranks.work import Buffers, Work

_SIDE = 192  # of the matrices: three of them stay in a core's own cache
_KEEP = np.float32(0.5)
_CORES = os.cpu_count() or 1
_TICK = os.sysconf("SC_CLK_TCK")


def _idle() -> float:
    """Return the seconds that the cores of this machine have had nothing to do, all together."""
    with open("/proc/stat", encoding="ascii") as counters:
        fields = counters.readline().split()
    return (int(fields[4]) + int(fields[5])) / _TICK  # idle, and waiting for disks


class Hider:
    """A vector to sum over the hosts, matrices to multiply, and what the driver can ask."""

    def __init__(self, place: Station, comm: cl.Communicator) -> None:
        self._place, self._comm = place, comm
        self._lineup = LineUp(place.lineup, place.rank, place.ranks, place.shared_cores)
        self._turn = 0
        self._a = np.full((_SIDE, _SIDE), _KEEP / _SIDE, np.float32)
        self._b, self._c = np.ones_like(self._a), np.empty_like(self._a)

    @property
    def orders(self) -> dict[str, Callable[..., tuple[Message, bytes]]]:
        """What the driver can ask for, by name."""
        return {"prepare": self.prepare, "block": self.block}

    def prepare(self, nbytes: int) -> tuple[Message, bytes]:
        """Make a vector of so many bytes the present one."""
        work = Work("allreduce", "float32", nbytes, self._place.ranks, self._place.rank)
        self._x, self._out = np.empty(work.part, np.float32), np.empty(work.part, np.float32)
        self._buffers = Buffers(work, self._x, self._out)
        return {}, b""

    def block(self, transfer: bool, products: int, calls: int) -> tuple[Message, bytes]:
        """Do it `calls` times; tell when the first began and the last was over, and how busy.

        `products`: how many matrices are multiplied beside each transfer. One transfer more goes
        before, against full buckets.
        """
        self._turn += 1
        self._buffers.fill(self._turn)
        self._out.fill(np.nan)
        if transfer:
            self._comm.allreduce(self._x, out=self._out)
        self._lineup.wait()
        idle, first = _idle(), time.perf_counter()
        for _ in range(calls):
            pending: Any = None
            if transfer:
                pending = self._comm.allreduce(self._x, out=self._out, async_op=True)
            for _ in range(products):
                np.matmul(self._a, self._b, out=self._c)
            if pending is not None:
                pending.wait()
        last = time.perf_counter()
        busy = 1 - (_idle() - idle) / (last - first) / _CORES
        wrong = self._buffers.wrong(self._turn) if transfer else 0
        if products:
            wrong += int(np.count_nonzero(np.abs(self._c - _KEEP) > 1e-3))
        return {"first": first, "last": last, "busy": busy, "wrong": wrong}, b""


def main() -> None:
    """Meet the others, then the driver."""
    place = station()
    with cl.init() as comm:
        attend(place, cl.__version__, Hider(place, comm).orders)


if __name__ == "__main__":
    main()
