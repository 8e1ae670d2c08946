# SPDX-License-Identifier: Apache-2.0
"""The largest elements of a long vector, exactly: in times of reading it once, and beside torch.

With error feedback vector and residual are read and the residual is written: 12 bytes of each
element, where the guess of the threshold holds.
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
from bench.gpu.peers import MissingError, largest
from bench.gpu.rounds import Enqueue, ratios
from bench.gpu.state import COPY, Bench
from bench.gpu.yardsticks import Graph, Yardsticks
from collectives._ffi import check, ffi, lib
from collectives.arrays import DTYPES

OURS, FEEDBACK, TORCH = "selection", "with error feedback", "torch.topk of abs"
SHARES = {"0.1 %": 1000, "1 %": 100}
READ, FED_BACK = 4, 12  # bytes of an element


class Selection(AbstractContextManager["Selection"]):
    """A vector of random float32, and room for its ``k`` largest; freed at the end."""

    def __init__(self, yard: Yardsticks, n: int, k: int) -> None:
        self.yard, self.n, self.k = yard, n, k
        self._memory: list[GpuMemory] = []
        self.x, self.residual = self._array(n, "f4"), self._array(n, "f4")
        self.indices, self.values = self._array(k, "i4"), self._array(k, "f4")
        yard.fill(self.x.address, n, False, 7)
        self._plain, self._fed_back = (self._request(residual) for residual in (False, True))
        yard.synchronize()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.yard.synchronize()
        for memory in self._memory:
            memory.close()

    def enqueue(self) -> None:
        """Select from the vector."""
        self._select(self._plain)

    def enqueue_fed_back(self) -> None:
        """Add the vector to the residual, and select from that; the residual keeps the rest."""
        self._select(self._fed_back)

    def check(self) -> None:
        """Raise WrongError where the outcome is not that of NumPy, ties by their order."""
        x = self.x.host()
        expected = largest_of(x, self.k)
        self._compare(OURS, x, expected)
        self.enqueue_fed_back()  # the first time: the residual was zero
        self._compare(FEEDBACK, x, expected)
        x[expected] = 0
        if not np.array_equal(self.residual.host(), x):
            raise WrongError(f"{FEEDBACK}: the residual is not what was not selected")

    def replay(self, graph: Graph) -> None:
        """Replay a selection into poisoned memory, and look at it."""
        for out in (self.indices, self.values):
            out.poison()
        self.yard.synchronize()
        graph.seconds()
        x = self.x.host()
        self._compare(f"{OURS}, replayed", x, largest_of(x, self.k))

    def _compare(self, way: str, x: Any, expected: Any) -> None:
        indices = self.indices.host()
        wrong = int((indices != expected).sum()) + int((self.values.host() != x[expected]).sum())
        if wrong:
            raise WrongError(f"{way} of {self.k} of {self.n}: {wrong} entries are wrong")

    def _select(self, request: Any) -> None:
        stream = ffi.cast("void *", self.yard.stream)
        check(lib.coll_gpu_top_k(self.yard.device, request, stream))

    def _request(self, fed_back: bool) -> Any:
        made = ffi.new("coll_gpu_selection *")
        made.size, made.dtype = ffi.sizeof("coll_gpu_selection"), DTYPES["float32"]
        made.index_bytes, made.n, made.k = 4, self.n, self.k
        for name in ("x", "indices", "values", *(["residual"] if fed_back else [])):
            setattr(made, name, ffi.cast("void *", getattr(self, name).address))
        room = ffi.new("size_t *")
        check(lib.coll_gpu_top_k_room(self.yard.device, made, room))
        made.room = ffi.cast("void *", self._taken(int(room[0])).address)
        return made

    def _array(self, n: int, dtype: str) -> GpuArray:
        return GpuArray(self._taken(n * np.dtype(dtype).itemsize), n, dtype)

    def _taken(self, nbytes: int) -> GpuMemory:
        self._memory.append(GpuMemory(self.yard, nbytes))
        return self._memory[-1]


def largest_of(x: Any, k: int) -> Any:
    """Return the ascending places of the ``k`` largest magnitudes; of equal ones the first."""
    magnitude = np.abs(x)
    least = np.partition(magnitude, len(x) - k)[len(x) - k]
    above = np.flatnonzero(magnitude > least)
    equal = np.flatnonzero(magnitude == least)[: k - len(above)]
    return np.sort(np.concatenate([above, equal])).astype(np.int32)


def figures(bench: Bench) -> Iterator[Figure]:
    """Measure the selection of a thousandth and of a hundredth."""
    n = bench.extent.elements
    for share, part in SHARES.items():
        what = f"top-k of {n} elements, {share}"
        if bench.over(what):
            return
        free = int(bench.yard.facts()["free"])
        if 4 * READ * n > free:
            bench.leave_out(f"{what}: the GPU has {free} bytes free")
            return
        yield from _cell(bench, share, n, n // part)


def _cell(bench: Bench, share: str, n: int, k: int) -> Iterator[Figure]:
    with Selection(bench.yard, n, k) as job:
        bench.copy()  # takes its memory
        job.enqueue()
        job.check()
        ways: dict[str, Enqueue] = {
            COPY: bench.copy, OURS: job.enqueue, FEEDBACK: job.enqueue_fed_back,
        }  # fmt: skip
        try:
            ways[TORCH] = largest(job.x, k)
        except MissingError as error:
            bench.leave_out(str(error))

        def look(name: str, graph: Graph) -> None:
            if name == OURS:
                job.replay(graph)

        times = bench.measure(ways, 1, look)
    bandwidth, cell = bench.bandwidth(times), Cell(f"top-k, {share}", 1, READ * n, "float32")
    goal = Goal(most=2.0) if share == "0.1 %" else None
    reads = [s * b / (READ * n) for s, b in zip(times[OURS], bandwidth, strict=True)]
    yield cell.figure("times one read at B", reads, goal)
    yield cell.figure("us", [1e6 * seconds for seconds in times[OURS]])
    fed_back = [s * b / (FED_BACK * n) for s, b in zip(times[FEEDBACK], bandwidth, strict=True)]
    yield cell.figure(f"{FEEDBACK}, times 12 bytes of each at B", fed_back)
    if TORCH in times:
        beside = Goal(least=3.0) if share == "0.1 %" else None
        yield cell.figure(f"{TORCH}, times ours", ratios(times[TORCH], times[OURS]), beside)
