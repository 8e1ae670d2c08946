# SPDX-License-Identifier: Apache-2.0
"""What a rank has to do in a cell: lengths, values, and what must come out, for every library.

Values are small integers, so sums are exact in every dtype and order. They repeat with a prime
period and are shifted by one element from turn to turn, so that the result of the last turn is
wrong in this one. Large vectors are filled and read in pieces: all of a vector is written before
and read after each call, without a second vector of its size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

EQUAL = ("allreduce", "reduce_scatter", "allgather", "broadcast", "alltoall")
# The forms that are given the lengths of parts, which are equal here: they do what the others do.
UNEQUAL = ("reduce_scatterv", "allgatherv", "alltoallv")
KINDS = (*EQUAL, *UNEQUAL)
DTYPES = ("float32", "bfloat16", "float16")
IN_PLACE = frozenset({"allreduce", "broadcast"})
ROOT = 0

_PERIOD = 8191
_SHIFTS = 16
_PIECE = 8 * _PERIOD  # elements
_LARGEST = 8  # so that a sum over 8 ranks is exact in bfloat16
_WORDS: dict[int, Any] = {2: np.uint16, 4: np.uint32}


class RefusedError(Exception):
    """A library does not have what a cell asks for; the text says what."""


@dataclass(frozen=True)
class Work:
    """A cell as one rank sees it.

    `nbytes` is nccl-tests' size: of the vector (allreduce, broadcast), of the whole input
    (reduce_scatter, alltoall), of the whole result (allgather).
    """

    kind: str
    dtype: str
    nbytes: int
    ranks: int
    rank: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.dtype not in DTYPES:
            raise ValueError(f"{self.kind} of {self.dtype} is unknown")

    @property
    def numpy(self) -> np.dtype[Any]:
        """The elements' dtype."""
        if self.dtype != "bfloat16":
            return np.dtype(self.dtype)
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return narrow

    @property
    def does(self) -> str:
        """The kind that does the same with equal parts."""
        return self.kind.removesuffix("v") if self.kind in UNEQUAL else self.kind

    @property
    def parts(self) -> list[int]:
        """Elements that each rank owns."""
        return [self.part] * self.ranks

    @property
    def part(self) -> int:
        """Elements that one rank owns; of the whole vector where all own all. At least one."""
        parts = 1 if self.kind in IN_PLACE else self.ranks
        return max(self.nbytes // self.numpy.itemsize // parts, 1)

    @property
    def handed(self) -> int:
        """Elements of the input."""
        return self.part * (self.ranks if self.does in ("reduce_scatter", "alltoall") else 1)

    @property
    def taken(self) -> int:
        """Elements of the result."""
        return self.part * (self.ranks if self.does in ("allgather", "alltoall") else 1)

    def arrays(self, make: Callable[..., Array] = np.empty) -> tuple[Array, Array]:
        """Return an input and a result, the same one in place; `make` takes length and dtype."""
        x = make(self.handed, self.numpy)
        return x, (x if self.kind in IN_PLACE else make(self.taken, self.numpy))


@dataclass(frozen=True)
class Bound:
    """A call with everything decided beforehand, on arrays that are filled and read around it."""

    x: Array
    out: Array
    call: Callable[[], object]


class Buffers:
    """The arrays of a call: filled before it, read and checked after it."""

    def __init__(self, work: Work, x: Array, out: Array) -> None:
        generator = np.random.default_rng(work.ranks)
        rows = generator.integers(-_LARGEST, _LARGEST, (work.ranks, _PERIOD), endpoint=True)
        self._x = _words(x)
        self._input = _repeated(rows[work.rank], work)
        self._parts = np.split(_words(out), work.taken // work.part)
        self._expected = [_repeated(row, work) for row in _results(work, rows)]

    def fill(self, turn: int) -> None:
        """Write the input of this turn."""
        shift = turn % _SHIFTS
        x, values = self._x, self._input
        for begin in range(0, len(x), _PIECE):
            piece = x[begin : begin + _PIECE]
            piece[...] = values[shift : shift + len(piece)]

    def wrong(self, turn: int) -> int:
        """Read the whole result; return how many elements are not what they must be."""
        shift, wrong = turn % _SHIFTS, 0
        for part, values in zip(self._parts, self._expected, strict=True):
            for begin in range(0, len(part), _PIECE):
                piece = part[begin : begin + _PIECE]
                wrong += int(np.count_nonzero(piece != values[shift : shift + len(piece)]))
        return wrong


def _results(work: Work, rows: Array) -> list[Array]:
    """Return one period of each part of this rank's result."""
    offset = -work.rank * work.part
    if work.kind == "allreduce":
        return [rows.sum(axis=0)]
    if work.does == "reduce_scatter":
        return [np.roll(rows.sum(axis=0), offset)]
    if work.kind == "broadcast":
        return [rows[ROOT]]
    return [np.roll(row, offset if work.does == "alltoall" else 0) for row in rows]


def _repeated(row: Array, work: Work) -> Array:
    """Return the words of a period, long enough for any piece at any shift."""
    length = min(_PIECE, max(work.handed, work.taken)) + _SHIFTS
    return _words(np.resize(row, length).astype(work.numpy))


def _words(array: Array) -> Array:
    """Return the array as integers: bits are compared, and NumPy copies those fastest."""
    return array.view(_WORDS[array.dtype.itemsize])
