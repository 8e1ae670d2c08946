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

Array = npt.NDArray[Any]

KINDS = (
    "allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "barrier",
    "gather", "scatter", "alltoall", "scan", "exscan",
)  # fmt: skip
SCANS = frozenset({"scan", "exscan"})
REDUCING = frozenset({"allreduce", "reduce_scatter", "reduce"}) | SCANS
ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
# Each rank owns one of equal parts; counts are of a part, as in nccl-tests.
PARTED = frozenset({"reduce_scatter", "allgather", "gather", "scatter", "alltoall"})
OPS = ("sum", "prod", "min", "max", "avg")
DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bfloat16")

PERIOD = 8191  # prime: no chunk boundary of a sensible size falls on a multiple
SHIFTS = 16  # turns after which the values repeat

# Largest integer up to which a dtype represents all integers, and its largest safe exponent.
_INTEGERS = {"float32": 1 << 24, "float64": 1 << 53, "bfloat16": 1 << 8}
_EXPONENTS = 120
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype called `name`; ``ValueError`` where there is none."""
    if name not in DTYPES:
        raise ValueError(f"dtype {name!r} is unknown; choose one of {', '.join(DTYPES)}")
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise ValueError(
            "dtype bfloat16 needs the package ml_dtypes; install it with: pip install ml_dtypes"
        ) from None
    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


@dataclass(frozen=True)
class Workload:
    """One collective on one size of vector: what is computed, not how.

    `nbytes` is nccl-tests' size: of the whole vector (allreduce, broadcast, reduce, scans), of the
    whole input (reduce_scatter, scatter, alltoall), of the whole result (allgather, gather). It is
    cut to whole elements per rank, at least one.
    """

    kind: str
    nbytes: int
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"collective {self.kind!r} is unknown; choose from {', '.join(KINDS)}")
        if self.op not in OPS:
            raise ValueError(f"op {self.op!r} is unknown; choose one of {', '.join(OPS)}")
        if self.op == "avg" and self.kind in REDUCING and "int" in self.dtype:
            raise ValueError(f"avg of {self.dtype} is not defined; use op sum and divide")
        if self.op == "avg" and self.kind in SCANS:
            raise ValueError(f"avg of {self.kind} is not defined; use op sum")
        if self.nbytes < 0:
            raise ValueError(f"a size cannot be negative, got {self.nbytes}")

    def count(self, ranks: int) -> int:
        """Elements, as nccl-tests counts them: of one part where every rank owns one."""
        if self.kind == "barrier":
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
    dtype = dtype_of(workload.dtype)
    generator = np.random.default_rng([ranks, KINDS.index(workload.kind)])
    shape = (ranks, PERIOD)
    if "int" in workload.dtype:
        bounds = np.iinfo(dtype)
        values = generator.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
        # Odd factors never multiply to zero, whatever wraps around.
        return values | dtype.type(1) if workload.op == "prod" else values
    if workload.kind in REDUCING and workload.op == "prod":
        reach = 1 if ranks <= _EXPONENTS else 0
        exponents = generator.integers(-reach, reach, shape, endpoint=True)
        signs = generator.choice([-1.0, 1.0], shape)
        return np.asarray(np.ldexp(signs, exponents).astype(dtype))
    summed = workload.kind in REDUCING and workload.op in ("sum", "avg")
    limit = min(_INTEGERS[workload.dtype], 1 << 20) // (ranks if summed else 1)
    limit = max(limit, 1)
    return np.asarray(generator.integers(-limit, limit, shape, endpoint=True).astype(dtype))


def reduced(values: Array, op: str) -> Array:
    """Fold the rows of `values`, shape (ranks, n), to the one right answer, shape (n,)."""
    if op == "min":
        return np.asarray(values.min(axis=0))
    if op == "max":
        return np.asarray(values.max(axis=0))
    if np.issubdtype(values.dtype, np.integer):
        fold = np.sum if op == "sum" else np.prod
        return np.asarray(fold(values, axis=0, dtype=values.dtype))  # wraps around, as C does
    wide = values.astype(np.float64)
    total = wide.prod(axis=0) if op == "prod" else wide.sum(axis=0)
    return np.asarray((total / len(values) if op == "avg" else total).astype(values.dtype))


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


def different(result: Array, expected: Array) -> int:
    """Count elements whose bits differ."""
    word = _WORDS[result.dtype.itemsize]
    return int(np.count_nonzero(result.view(word) != expected.view(word)))


def inaccurate(result: Array, expected: Array) -> int:
    """Count elements further than two units in the last place from `expected`.

    An average by 3 ranks is a product with a rounded 1/3: exact only for powers of two.
    """
    digits = {2: 2.0**-7, 4: 2.0**-23, 8: 2.0**-52}[result.dtype.itemsize]
    wide, right = result.astype(np.float64), expected.astype(np.float64)
    near = np.abs(wide - right) <= 2 * digits * np.abs(right)
    return int(np.count_nonzero(~near))
