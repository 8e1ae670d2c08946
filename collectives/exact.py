# SPDX-License-Identifier: Apache-2.0
"""Inputs whose results are exact in any order of summation, so that one wrong bit is seen.

The idea is that of nccl-tests' ``verifiable``: floating-point sums are made of small integers,
products of powers of two, integers wrap around. Then every algorithm has one right answer, and the
check is a comparison of bits. Values repeat with a prime period, so that a chunk in the wrong place
is a wrong chunk, and each turn shifts them by one element, so that the result of the last turn is
wrong in this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from collectives.operands import (
    DTYPES,
    OPS,
    PAIRS,
    different,
    dtype_of,
    inaccurate,
    operands,
    ops_of,
    reduced,
)

__all__ = ["DTYPES", "KINDS", "OPS", "Buffers", "Workload", "dtype_of", "ops_of"]

Array = npt.NDArray[Any]

KINDS = (
    "allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "barrier",
    "gather", "scatter", "alltoall", "scan", "exscan",
)  # fmt: skip
SCANS = frozenset({"scan", "exscan"})
REDUCING = frozenset({"allreduce", "reduce_scatter", "reduce"}) | SCANS
ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
SPARSE = ("allreduce", "reduce_scatter", "allgather", "broadcast")  # of sparse vectors, too
# Each rank owns one of equal parts; counts are of a part, as in nccl-tests.
PARTED = frozenset({"reduce_scatter", "allgather", "gather", "scatter", "alltoall"})

PERIOD = 8191  # prime: no chunk boundary of a sensible size falls on a multiple
SHIFTS = 16  # turns after which the values repeat


@dataclass(frozen=True)
class Workload:
    """One collective on one size of vector: what is computed, not how.

    `nbytes` is nccl-tests' size: of the whole vector (allreduce, broadcast, reduce, scans), of the
    whole input (reduce_scatter, scatter, alltoall), of the whole result (allgather, gather). It is
    cut to whole elements per rank, at least one. With a `density` vectors are sparse, and so many
    of their elements, as a share, are there on each rank; `nbytes` are those of a dense one.
    """

    kind: str
    nbytes: int
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0
    density: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"collective {self.kind!r} is unknown; choose from {', '.join(KINDS)}")
        if self.op not in OPS:
            raise ValueError(f"op {self.op!r} is unknown; choose one of {', '.join(OPS)}")
        defined = ops_of(self.dtype)
        if self.kind in REDUCING and self.op not in defined:
            raise ValueError(
                f"{self.op} of {self.dtype} is not defined; choose one of {', '.join(defined)}"
            )
        if self.op == "avg" and self.kind in SCANS:
            raise ValueError(f"avg of {self.kind} is not defined; use op sum")
        if self.density is not None and self.kind not in SPARSE:
            raise ValueError(f"there is no {self.kind} of sparse vectors: {', '.join(SPARSE)} are")
        if self.density is not None and self.dtype in PAIRS:
            raise ValueError(f"there are no sparse vectors of {self.dtype}")
        if self.nbytes < 0:
            raise ValueError(f"a size cannot be negative, got {self.nbytes}")

    def count(self, ranks: int) -> int:
        """Elements, as nccl-tests counts them: of one part where every rank owns one."""
        if self.kind == "barrier" or self.nbytes == 0:
            return 0
        elements = self.nbytes // dtype_of(self.dtype).itemsize
        if self.kind in PARTED:
            elements //= ranks
        return max(elements, 1)

    def size(self, ranks: int) -> int:
        """Bytes really used, for the table and for the bandwidth."""
        parts = ranks if self.kind in PARTED else 1
        return self.count(ranks) * parts * dtype_of(self.dtype).itemsize


def contributions(workload: Workload, ranks: int) -> Array:
    """One period of every rank's input, shape (ranks, PERIOD)."""
    generator = np.random.default_rng([ranks, KINDS.index(workload.kind)])
    op = workload.op if workload.kind in REDUCING else None
    return operands(workload.dtype, op, (ranks, PERIOD), generator)


class Buffers:
    """One rank's vectors for a workload: filled before a call and checked after it.

    `x` is the input. `out` is where the result lies: `x` itself where the collective works in
    place (allreduce, broadcast, reduce, scans), else a vector of its own. Where a rank hands
    nothing in (scatter) or gets nothing (gather), the vector is empty.
    """

    def __init__(self, workload: Workload, rank: int, ranks: int) -> None:
        self.workload = workload
        self.rank = rank
        self.ranks = ranks
        self._width = workload.count(ranks)
        rows = contributions(workload, ranks)
        handed, parts = self._lengths()
        self._input = np.resize(rows[rank], handed + SHIFTS)
        self._expected = self._results(rows)
        self.x: Array = np.empty(handed, rows.dtype)
        self.out: Array = self.x
        if workload.kind in PARTED:
            self.out = np.empty(parts * self._width, rows.dtype)

    def _lengths(self) -> tuple[int, int]:
        """Elements of the input, and parts of the result."""
        kind, n, ranks = self.workload.kind, self._width, self.ranks
        root = self.rank == self.workload.root
        if kind == "scatter":
            return (ranks * n if root else 0), 1
        if kind in ("reduce_scatter", "alltoall"):
            return ranks * n, (1 if kind == "reduce_scatter" else ranks)
        return n, (0 if kind == "gather" and not root else ranks)

    def _results(self, rows: Array) -> Array:
        """Return what must come out, shape (parts, elements of a part + SHIFTS)."""
        kind, rank, n = self.workload.kind, self.rank, self._width
        op, root = self.workload.op, self.workload.root
        if kind in ("allgather", "gather"):
            every = np.stack([np.resize(row, n + SHIFTS) for row in rows])
            return every if kind == "allgather" or rank == root else every[:0]
        if kind == "alltoall":
            return np.stack([self._part(row) for row in rows])
        if kind == "scatter":
            return self._part(rows[root])[np.newaxis]
        if kind == "reduce_scatter":
            return self._part(reduced(rows, op))[np.newaxis]
        if kind == "broadcast":
            result = rows[root]
        elif kind in SCANS:
            last = rank if kind == "exscan" else rank + 1
            # Nothing comes before rank 0: it keeps what it has.
            result = reduced(rows[:last], op) if last else rows[0]
        elif kind == "barrier" or (kind == "reduce" and rank != root):
            result = rows[rank]
        else:
            result = reduced(rows, op)
        return np.resize(result, n + SHIFTS)[np.newaxis]

    def _part(self, row: Array) -> Array:
        """Return this rank's part of a vector of as many parts as ranks."""
        return np.resize(np.roll(row, -self.rank * self._width), self._width + SHIFTS)

    def fill(self, turn: int) -> None:
        """Rewrite the input for this turn; a separate result is wiped."""
        shift = turn % SHIFTS
        self.x[...] = self._input[shift : shift + len(self.x)]
        if self.out is not self.x:
            self.out[...] = 0

    def wrong(self, turn: int) -> int:
        """Read the whole result and count the elements that are not what they must be.

        A rank that is promised none must find its own vector as it was.
        """
        shift = turn % SHIFTS
        expected = self._expected[:, shift : shift + self._width]
        result = self.out.reshape(expected.shape)
        if self.workload.op == "avg" and self.workload.kind in REDUCING:
            return inaccurate(result, expected)
        return different(result, expected)
