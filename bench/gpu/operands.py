# SPDX-License-Identifier: Apache-2.0
"""The vectors of an allreduce of several ranks on one GPU, and whether its results are right."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

import ml_dtypes
import numpy as np

from bench.gpu.arrays import GpuArray, GpuMemory
from bench.gpu.rounds import Enqueue
from bench.gpu.yardsticks import GpuError, Graph, Vectors, Yardsticks

DTYPES = {"float32": np.dtype(np.float32), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


class WrongError(Exception):
    """A result that is not the sum."""


class Operands(AbstractContextManager["Operands"]):
    """Random inputs and poisoned outputs, ``nbytes`` for each rank; freed at the end."""

    def __init__(self, yard: Yardsticks, ranks: int, nbytes: int, dtype: str) -> None:
        kind = DTYPES[dtype]
        n = nbytes // kind.itemsize
        self.yard, self.ranks, self.nbytes, self.dtype = yard, ranks, nbytes, dtype
        self._memory: list[GpuMemory] = []
        self.inputs, self.outputs = self._arrays(n, kind), self._arrays(n, kind)
        addresses = [[x.address for x in side] for side in (self.inputs, self.outputs)]
        self.vectors = Vectors(n, addresses[0], addresses[1], dtype == "bfloat16")
        for rank, x in enumerate(self.inputs):
            yard.fill(x.address, n, dtype == "bfloat16", 1000 * ranks + rank)
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

    def poison(self) -> None:
        """Leave no result of before; done on return, whatever stream writes next."""
        for out in self.outputs:
            out.poison()
        self.yard.synchronize()

    def check(self, way: str) -> None:
        """Raise WrongError where the outputs are not the sum."""
        try:
            wrong = self.yard.wrong(self.vectors)
        except GpuError as error:
            raise WrongError(f"{self._named(way)}: {error}") from None
        if wrong:
            everything = self.vectors.n * self.ranks
            raise WrongError(f"{self._named(way)}: {wrong} of {everything} elements are wrong")

    def replay(self, way: str, graph: Graph, enqueue: Enqueue) -> None:
        """Replay a way into poisoned outputs, and look at them. Raise as :meth:`check`.

        ``enqueue`` makes the call again where they are wrong: it says so if a kernel gave up.
        """
        self.poison()
        graph.seconds()
        try:
            self.check(f"{way}, replayed")
        except WrongError:
            enqueue()
            raise

    def _named(self, way: str) -> str:
        return f"{way}, {self.ranks} ranks, {self.nbytes} bytes of {self.dtype}"

    def _arrays(self, n: int, kind: np.dtype[np.generic]) -> list[GpuArray]:
        memory = [GpuMemory(self.yard, n * kind.itemsize) for _ in range(self.ranks)]
        self._memory += memory
        return [GpuArray(mine, n, kind) for mine in memory]
