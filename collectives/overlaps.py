# SPDX-License-Identifier: Apache-2.0
"""Which arrays share memory, as their callers see it: strided ones, not their packed copies."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

import numpy as np

from collectives._ffi import ffi
from collectives.arrays import Operand, itemsize

# Of strided arrays it is a hard question in general; beyond so much work the answer is yes.
_MOST_WORK: Any = 100_000  # Any: what the stubs of NumPy know is less


_ADDRESS = ffi.typeof("uintptr_t")
_cast = ffi.cast


class Memory:
    """The memory of some arrays, to be asked whether another one shares it."""

    def __init__(self) -> None:
        self._arrays: list[Operand] = []
        # Stretches around them that do not meet, in order.
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, array: Operand, start: int, end: int) -> None:
        """Add the memory of one more, which lies in this span."""
        if start == end:
            return
        self._arrays.append(array)
        first = bisect_right(self._ends, start)
        last = bisect_left(self._starts, end, first)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def shared_with(self, array: Operand, start: int, end: int) -> bool:
        """Whether an array, which lies in this span, shares memory with one of them."""
        if start == end:
            return False
        place = bisect_right(self._ends, start)
        if place == len(self._starts) or self._starts[place] >= end:
            return False
        return any(_share(one, array) for one in self._arrays)


def apart(spans: Iterable[tuple[int, int]]) -> bool:
    """Whether no two spans meet: the usual case, seen at once."""
    known = sorted(spans)
    ends = [end for _, end in known]
    return all(end <= start for end, (start, _) in zip(ends, known[1:], strict=False))


def span(given: Operand) -> tuple[int, int]:
    """Return the addresses between which the caller's array lies; (0, 0) of an empty one."""
    if not given.elements:
        return 0, 0
    if given.packed is None:
        first = int(_cast(_ADDRESS, given.pointer))
        return first, first + given.elements * itemsize(given)
    first, strides = _strides(given)
    ways = [(n - 1) * step for n, step in zip(given.shape, strides, strict=True)]
    low, high = sum(min(way, 0) for way in ways), sum(max(way, 0) for way in ways)
    return first + low, first + high + itemsize(given)


def _share(one: Operand, other: Operand) -> bool:
    (a, b), (c, d) = span(one), span(other)
    if a >= d or c >= b:
        return False
    if one.packed is None and other.packed is None:
        return True
    try:
        return np.shares_memory(_layout(one), _layout(other), max_work=_MOST_WORK)
    except np.exceptions.TooHardError:
        return True


def _strides(given: Operand) -> tuple[int, tuple[int, ...]]:
    """Return where the first element of a strided array is, and its strides in bytes."""
    if isinstance(given.packed, np.ndarray):
        return given.packed.__array_interface__["data"][0], given.packed.strides
    size = itemsize(given)
    return given.packed.data_ptr(), tuple(step * size for step in given.packed.stride())


def _layout(given: Operand) -> Any:
    """Return a NumPy array that lies in memory as the caller's does."""
    start, end = span(given)
    size, shape, first = itemsize(given), given.shape, start
    strides: tuple[int, ...] | None = None
    if given.packed is not None:
        first, strides = _strides(given)
    memory = ffi.buffer(_cast("char *", start), end - start)
    return np.ndarray(shape, f"V{size}", memory, first - start, strides)
