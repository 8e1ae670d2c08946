# SPDX-License-Identifier: Apache-2.0
"""A rank's present problem, and what the driver can ask of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.peers.channel import Message
from bench.peers.ranks.lineup import LineUp
from bench.peers.ranks.serve import Orders, Station, attend
from bench.sparse.supports import Array, Problem, expected, indices, values


@dataclass(frozen=True)
class Bound:
    """A call with everything decided beforehand.

    `call` makes it and returns its result; `read` gives that as indices and values, or as None
    and all values. None: nothing is to be checked.
    """

    call: Callable[[], Any]
    read: Callable[[Any], tuple[Array | None, Array]] | None


Binder = Callable[[Problem, str, Array, Array], Bound]


class Server:
    """What is measured of a library: calls one by one, or without a pause."""

    def __init__(self, place: Station, bind: Binder) -> None:
        self._place = place
        self._bind = bind
        self._lineup = LineUp(place.lineup, place.rank, place.ranks, place.shared_cores)
        self._bound: Bound | None = None
        self._problem: Problem | None = None
        self._sum: tuple[Array, Array] | None = None

    @property
    def orders(self) -> Orders:
        """What the driver can ask for, by name."""
        return {"prepare": self.prepare, "measure": self.measure, "flow": self.flow}

    def prepare(self, kind: str, dtype: str, nbytes: int) -> tuple[Message, bytes]:
        """Make a problem (`kind`) the present one, called in the way that `dtype` names."""
        del nbytes
        problem, rank = Problem.read(kind), self._place.rank
        if problem != self._problem:
            self._problem = problem
            self._places = indices(problem, rank)
            self._values = values(problem, rank, self._places.size)
            self._sum = expected(problem)
        self._bound = self._bind(problem, dtype, self._places, self._values)
        return {}, b""

    def measure(self, calls: int, warm: int) -> tuple[Message, bytes]:
        """Time `calls` calls after `warm` others, each begun together."""
        assert self._bound is not None
        durations, wrong = np.empty(calls + warm), 0
        clock, call, wait = time.perf_counter, self._bound.call, self._lineup.wait
        start = clock()
        for i in range(calls + warm):
            self._touch()
            wait()
            begin = clock()
            result = call()
            durations[i] = clock() - begin
            if i in (0, calls + warm - 1):
                wrong += self._wrong(result)
        return {"wrong": wrong, "seconds": clock() - start}, durations[warm:].tobytes()

    def flow(self, calls: int, drain: int) -> tuple[Message, bytes]:
        """Make `drain` calls and `calls` others without a pause; check the result of the last."""
        assert self._bound is not None
        clock, call = time.perf_counter, self._bound.call
        self._lineup.wait()
        for _ in range(drain):
            call()
        first = clock()
        for _ in range(calls - 1):
            call()
        result = call()
        last = clock()
        return {"first": first, "last": last, "wrong": self._wrong(result)}, b""

    def _touch(self) -> None:
        """Write the input anew, so that it lies in this core's cache as a gradient does."""
        self._values[...] = self._values.copy()

    def _wrong(self, result: Any) -> int:
        assert self._bound is not None
        assert self._sum is not None
        if self._bound.read is None:
            return 0
        places, sums = self._bound.read(result)
        if places is None:
            assert self._problem is not None
            whole = np.zeros(self._problem.length, np.float32)
            whole[self._sum[0]] = self._sum[1]
            return int(np.count_nonzero(whole != np.asarray(sums)))
        if places.size != self._sum[0].size:
            return abs(int(places.size) - int(self._sum[0].size))
        return int(np.count_nonzero((places != self._sum[0]) | (sums != self._sum[1])))


def serve(place: Station, version: str, bind: Binder) -> None:
    """Do what the driver asks for until it goes away."""
    attend(place, version, Server(place, bind).orders)
