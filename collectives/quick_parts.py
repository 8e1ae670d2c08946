# SPDX-License-Identifier: Apache-2.0
"""The short way of a collective of unequal parts, on plain NumPy arrays: as quick.py is for others.

``run_plain_parts`` of the compiled module (native/bindings/plain_parts.c) reads the lengths, looks
whether the arrays are as long, and makes the call. What it does not know it leaves to the method
itself. Where a rank has told its own lengths only, all tell each other first, on both ways alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from collectives._ffi import check
from collectives.lengths import UNKNOWN, exchanged, joined
from collectives.plain_calls import rows_of_parts, run_plain, run_plain_parts
from collectives.quick import CALLS

if TYPE_CHECKING:
    from collectives.caller import Caller

ndarray = np.ndarray
_MOST_ROWS = 1 << 30
_empty, _int64 = np.empty, np.dtype("int64")

_Method = TypeVar("_Method", bound=Callable[..., Any])

_ALLGATHER = CALLS["allgather"]["sum"]
_ALLTOALL = CALLS["alltoall"]["sum"]
_GATHER = CALLS["gather"]["sum"]
_SCATTER = CALLS["scatter"]["sum"]


def _done(comm: Caller, call: int, x: Any, out: Any, root: Any, counts: Any) -> bool:
    """Make the call, if all of it is plain. Raises its error."""
    status = run_plain_parts(comm._door, call, x, out, root, counts)
    if status > 0:
        check(status)
    return not status


def _result(comm: Caller, call: int, x: Any, counts: Any) -> Any:
    """Return a new array for what this rank gets; None where the lengths are not plain, or huge."""
    rows = rows_of_parts(comm._door, call, counts)
    if not 0 <= rows <= _MOST_ROWS:
        return None
    # No tuple is made for a vector: it takes as long as the call.
    return _empty(rows if x.ndim == 1 else (rows, *x.shape[1:]), x.dtype)


def _plain(comm: Caller, x: Any, out: Any, options: dict[str, Any]) -> bool:
    known = comm._plain and not options and type(x) is ndarray and x.ndim > 0
    return known and (out is None or type(out) is ndarray)


def told(comm: Caller, words: Sequence[int]) -> list[list[int]] | None:
    """Give all ranks each other's words; return them by rank, None where nothing was done."""
    size, n = comm._handle.size, len(words)
    everybodys = _empty((size, n), _int64)
    status = run_plain(comm._door, _ALLGATHER, np.array(words, _int64), everybodys.reshape(-1), 0)
    if status > 0:
        check(status)
    return None if status else everybodys.tolist()


def _room(x: Any, out: Any) -> int | None:
    """Return the length of ``out``, UNKNOWN without one; None where the long way looks at it."""
    if out is None:
        return UNKNOWN
    like = out.dtype is x.dtype and out.ndim == x.ndim and out.shape[1:] == x.shape[1:]
    return len(out) if like and not np.may_share_memory(x, out) else None


def _all_lengths(comm: Caller, x: Any, out: Any) -> list[int] | None:
    room = _room(x, out)
    rows = None if room is None else told(comm, (len(x), room))
    return None if rows is None else joined("allgatherv", rows)


def _all_blocks(comm: Caller, x: Any, out: Any, row: Any) -> list[list[int]] | None:
    """Return what each rank sends to each; None where ``row`` is not plain, or not of ``x``."""
    if rows_of_parts(comm._door, _ALLGATHER, row) != len(x):
        return None
    room = _room(x, out)
    rows = None if room is None else told(comm, [*row, *[UNKNOWN] * len(row), room])
    return None if rows is None else exchanged("alltoallv", rows)


def allgatherv(long: _Method) -> _Method:
    """Join all, for all."""

    @wraps(long)
    def method(comm: Any, x: Any, counts: Any = None, out: Any = None, **options: Any) -> Any:
        if _plain(comm, x, out, options):
            if counts is None:
                counts = _all_lengths(comm, x, out)
            result = _result(comm, _ALLGATHER, x, counts) if out is None else out
            if result is not None and _done(comm, _ALLGATHER, x, result, 0, counts):
                return result
        return long(comm, x, counts, out, **options)

    return cast("_Method", method)


def gatherv(long: _Method) -> _Method:
    """Join all, for one rank."""

    @wraps(long)
    def method(
        comm: Any, x: Any, counts: Any = None, out: Any = None, *, root: Any = 0, **options: Any
    ) -> Any:
        if counts is not None and _plain(comm, x, None, options):
            here = comm._handle.rank == root
            result = out if here else None
            if here and out is None:
                result = _result(comm, _GATHER, x, counts)
            known = result is not None if here else True
            if known and _done(comm, _GATHER, x, result, root, counts):
                return result
        return long(comm, x, counts, out, root=root, **options)

    return cast("_Method", method)


def scatterv(long: _Method) -> _Method:
    """Hand out parts."""

    @wraps(long)
    def method(
        comm: Any, x: Any, counts: Any, out: Any = None, *, root: Any = 0, **options: Any
    ) -> Any:
        here = comm._handle.rank == root
        # What hands nothing in is not looked at.
        given, result = x if here else None, x if out is None and not here else out
        if _plain(comm, x if here else result, result, options):
            if result is None:
                result = _result(comm, _SCATTER, x, counts)
            if result is not None and _done(comm, _SCATTER, given, result, root, counts):
                return result
        return long(comm, x, counts, out, root=root, **options)

    return cast("_Method", method)


def reduce_scatterv(long: _Method) -> _Method:
    """Reduce, a part for each."""
    calls = CALLS["reduce_scatter"]

    @wraps(long)
    def method(
        comm: Any, x: Any, counts: Any, out: Any = None, *, op: Any = "sum", **options: Any
    ) -> Any:
        if type(op) is str and op in calls and _plain(comm, x, out, options):
            result = _result(comm, calls[op], x, counts) if out is None else out
            if result is not None and _done(comm, calls[op], x, result, 0, counts):
                return result
        return long(comm, x, counts, out, op=op, **options)

    return cast("_Method", method)


def alltoallv(long: _Method) -> _Method:
    """Exchange blocks."""

    @wraps(long)
    def method(
        comm: Any, x: Any, send_counts: Any, recv_counts: Any = None, out: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        if recv_counts is None and _plain(comm, x, out, options):
            send_counts = _all_blocks(comm, x, out, send_counts) or send_counts
            result = _result(comm, _ALLTOALL, x, send_counts) if out is None else out
            if result is not None and _done(comm, _ALLTOALL, x, result, 0, send_counts):
                return result
        return long(comm, x, send_counts, recv_counts, out, **options)

    return cast("_Method", method)
