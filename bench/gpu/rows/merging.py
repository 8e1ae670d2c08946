# SPDX-License-Identifier: Apache-2.0
"""Sums of the ranks' sparse vectors, in times of what has to be moved for them.

Each entry is read once: 4 bytes of index, 4 of value. To dense, every rank's output is written
once; to a sparse sum, which has indices of 2 bytes within tiles, that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np

from bench.gpu.arrays import GpuArray, GpuMemory
from bench.gpu.figures import Cell, Figure, Goal
from bench.gpu.operands import WrongError
from bench.gpu.state import COPY, Bench
from bench.gpu.team import Team
from bench.gpu.yardsticks import Graph, Yardsticks
from collectives._ffi import ffi, lib
from collectives.arrays import DTYPES
from collectives.names import op_code
from collectives.sparse.on_gpu import request_of

DENSE, SPARSE = "to dense", "to sparse"
DENSITY = 0.01
ENTRY, SUMMED, VALUE = 8, 6, 4  # bytes


def support(n: int, rank: int) -> Any:
    """Return about a hundredth of the numbers below ``n``, ascending."""
    random = np.random.default_rng(rank)
    steps = random.integers(1, 2 * round(1 / DENSITY), size=round(1.2 * n * DENSITY) + 100)
    places = np.cumsum(steps)
    return places[places < n].astype(np.int32)


class Vectors(AbstractContextManager["Vectors"]):
    """A sparse vector for each rank, and a dense output; freed at the end."""

    def __init__(self, yard: Yardsticks, ranks: int, n: int) -> None:
        self.yard, self.ranks, self.n = yard, ranks, n
        self._memory: list[GpuMemory] = []
        self._places = [support(n, rank) for rank in range(ranks)]
        self._values = [
            np.random.default_rng(rank).standard_normal(len(places)).astype("f4")
            for rank, places in enumerate(self._places)
        ]
        indices, values = self._arrays(self._places), self._arrays(self._values)
        self.outputs = [GpuArray(self._taken(VALUE * n), n, "f4") for _ in range(ranks)]
        self.entries = sum(len(places) for places in self._places)
        self._requests = {
            DENSE: [self._request(i, v, o) for i, v, o in zip(indices, values, self.outputs,
                                                              strict=True)],
            SPARSE: [self._request(i, v, None) for i, v in zip(indices, values, strict=True)],
        }  # fmt: skip

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.yard.synchronize()
        for memory in self._memory:
            memory.close()

    def enqueue(self, team: Team, way: str) -> None:
        """Sum up, on all ranks."""
        requests, stream = self._requests[way], ffi.cast("void *", self.yard.stream)
        run, device = lib.coll_gpu_sparse_run, self.yard.device
        team.run(
            lambda comm: comm._handle.call(
                "sparse allreduce", run, requests[comm.rank], device, stream
            )
        )

    def poison(self) -> None:
        """Leave no result of before."""
        for out in self.outputs:
            out.poison()
        self.yard.synchronize()

    def check(self) -> None:
        """Raise WrongError where the first or the last output is not the sum in rank order."""
        expected = np.zeros(self.n, "f4")
        for places, values in zip(self._places, self._values, strict=True):
            expected[places] += values
        for out in (self.outputs[0], self.outputs[-1]):
            wrong = int((out.host() != expected).sum())
            if wrong:
                raise WrongError(f"{self.ranks} sparse vectors to dense: {wrong} sums are wrong")

    def check_union(self, team: Team) -> int:
        """Return how many entries a sparse sum has; raise WrongError where it is another number."""
        stream, found = ffi.cast("void *", self.yard.stream), ffi.new("size_t[]", self.ranks)
        entries, device = lib.coll_gpu_sparse_entries, self.yard.device
        team.run(
            lambda comm: comm._handle.call(
                "sparse allreduce", entries, device, stream, found + comm.rank
            )
        )
        union = len(np.unique(np.concatenate(self._places)))
        if set(found) != {union}:
            raise WrongError(f"a sparse sum has {list(found)} entries, where {union} are given")
        return union

    def _request(self, indices: GpuArray, values: GpuArray, out: GpuArray | None) -> Any:
        places, numbers = (ffi.cast("void *", array.address) for array in (indices, values))
        made = request_of(places, numbers, values.n, self.n, DTYPES["float32"], 4)
        made.op = op_code("allreduce", "sum")
        if out is not None:
            made.output = ffi.cast("void *", out.address)
        return made

    def _arrays(self, given: list[Any]) -> list[GpuArray]:
        return [GpuArray.of(self._taken(values.nbytes), values) for values in given]

    def _taken(self, nbytes: int) -> GpuMemory:
        self._memory.append(GpuMemory(self.yard, nbytes))
        return self._memory[-1]


def figures(bench: Bench) -> Iterator[Figure]:
    """Measure sums of vectors of which a hundredth is there."""
    n = bench.extent.elements
    for ranks in bench.extent.ranks:
        what = f"the sum of {ranks} sparse vectors of {n} elements"
        if bench.over(what):
            return
        free = int(bench.yard.facts()["free"])
        if 1.5 * VALUE * n * ranks > free:
            bench.leave_out(f"{what}: the GPU has {free} bytes free")
            continue
        yield from _cell(bench, ranks, n)


def _cell(bench: Bench, ranks: int, n: int) -> Iterator[Figure]:
    with Vectors(bench.yard, ranks, n) as vectors, Team(ranks) as team:
        bench.copy()  # takes its memory
        vectors.enqueue(team, SPARSE)
        union = vectors.check_union(team)
        vectors.poison()
        vectors.enqueue(team, DENSE)
        vectors.check()
        ways = {COPY: bench.copy} | {
            way: lambda way=way: vectors.enqueue(team, way) for way in (SPARSE, DENSE)
        }

        def look(name: str, graph: Graph) -> None:
            if name == DENSE:
                vectors.poison()
                graph.seconds()
                vectors.check()

        times = bench.measure(ways, 1, look)
    read, bandwidth = ENTRY * vectors.entries, bench.bandwidth(times)
    for way, least in ((DENSE, read + VALUE * n * ranks), (SPARSE, read + SUMMED * union)):
        cell = Cell(f"sparse sum {way}, 1 %", ranks, VALUE * n, "float32")
        shares = [s * b / least for s, b in zip(times[way], bandwidth, strict=True)]
        yield cell.figure("times its bytes at B", shares, Goal(most=2.0) if ranks == 8 else None)
        yield cell.figure("us", [1e6 * seconds for seconds in times[way]])
