# SPDX-License-Identifier: Apache-2.0
"""Sparse vectors of a workload: filled before a call, checked after it, as dense ones are.

Each rank has other indices, which stay; values are those that a dense vector would have there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from collectives.exact import PERIOD, REDUCING, SHIFTS, Workload, contributions
from collectives.operands import different, inaccurate, reduced
from collectives.sparse.vector import Sparse

Array = npt.NDArray[Any]


class SparseBuffers:
    """One rank's sparse vector for a workload with a density.

    ``x`` is the input; the call leaves what it returns in ``out``.
    """

    def __init__(self, workload: Workload, rank: int, ranks: int) -> None:
        self.workload = workload
        self._rank, self._ranks = rank, ranks
        self._part = workload.count(ranks)
        self._length = self._part * (ranks if workload.kind == "reduce_scatter" else 1)
        self._rows = contributions(workload, ranks)
        self._places = [self._drawn(each) for each in range(ranks)]
        own = self._places[rank]
        self.x = Sparse(own, np.empty(own.size, self._rows.dtype), self._length)
        self.out: Any = None
        # Of the result: where elements are, and for each rank which of them it has given.
        self._where, self._there = self._result_places()

    def _drawn(self, rank: int) -> Array:
        share = self.workload.density or 0.0
        some = max(round(share * self._length), 1) if self._length else 0
        generator = np.random.default_rng([rank, self._length])
        wide = np.int64 if self._length > np.iinfo(np.int32).max else np.int32
        return np.sort(generator.choice(self._length, some, replace=False)).astype(wide)

    def _result_places(self) -> tuple[Array, Array]:
        kind, places = self.workload.kind, self._places
        if kind == "broadcast":
            places = [places[self.workload.root]]
        if kind == "reduce_scatter":
            begin = self._rank * self._part
            places = [p[(p >= begin) & (p < begin + self._part)] for p in places]
        if kind == "allgather":
            where = np.concatenate([p + r * self._length for r, p in enumerate(places)])
            return where, np.repeat(np.arange(self._ranks), [p.size for p in places])
        where = np.unique(np.concatenate(places))
        return where, np.stack([np.isin(where, p, assume_unique=True) for p in places])

    def fill(self, turn: int) -> None:
        """Rewrite the values for this turn."""
        self.x.values[...] = self._rows[self._rank][self._columns(self._places[self._rank], turn)]
        self.out = None

    @staticmethod
    def _columns(places: Array, turn: int) -> Array:
        columns: Array = (places.astype(np.int64) + turn % SHIFTS) % PERIOD
        return columns

    def _expected(self, turn: int) -> Array:
        kind, op = self.workload.kind, self.workload.op
        where = self._where % self._length if kind == "allgather" and self._length else self._where
        columns = self._columns(where, turn)
        if kind == "allgather":
            return np.asarray(self._rows[self._there, columns])
        if kind == "broadcast":
            return np.asarray(self._rows[self.workload.root][columns])
        zero = np.zeros((), self._rows.dtype)
        return reduced(np.where(self._there, self._rows[:, columns], zero), op)

    def wrong(self, turn: int) -> int:
        """Read the whole result and count the elements that are not what they must be."""
        expected = self._expected(turn)
        places = self._where - (
            self._rank * self._part if self.workload.kind == "reduce_scatter" else 0
        )
        found, strange = self._found(places)
        some = (found != 0) | (expected != 0)  # zeros of both signs are nothing
        check = inaccurate if self._averages() else different
        return strange + check(found[some], expected[some])

    def _averages(self) -> bool:
        return self.workload.op == "avg" and self.workload.kind in REDUCING

    def _found(self, places: Array) -> tuple[Array, int]:
        """Return the result's elements at these places, and how many there are at others."""
        if not isinstance(self.out, Sparse):
            whole = np.asarray(self.out)
            found = whole[places]
            return found, int(np.count_nonzero(whole) - np.count_nonzero(found))
        found = np.zeros(places.size, self._rows.dtype)
        indices: Array = np.asarray(self.out.indices)
        at: Array = np.searchsorted(places, indices)
        known: Array = at < places.size
        known[known] = places[at[known]] == indices[known]
        found[at[known]] = np.asarray(self.out.values)[known]
        return found, int(np.count_nonzero(~known))
