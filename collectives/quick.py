# SPDX-License-Identifier: Apache-2.0
"""The short way of a call on plain NumPy arrays: what a small collective can afford.

An 8-byte allreduce takes a tenth of a microsecond; looking at two arrays and eleven arguments takes
thirty times as long. So each collective of equal parts has a short way in front, as a decorator:
where no option but the operation and the root is given, ``run_plain`` of the compiled module
(native/bindings/plain.c) looks at the arrays, compares shapes and makes the call, which was
prepared for its operation. Here is what only Python knows: which arrays a rank hands in and gets,
and how to make a result. (Options are taken as a dict, because Python fills in each keyword that is
left out by a look-up.)

Torch tensors are served by the arrays on their memory, where a collective writes all that it gets.

What is not plain, in arrays or options, is never judged here: then nothing was sent or written, and
the method itself, the long way, serves the call or says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from collectives._ffi import check, ffi
from collectives.arrays import as_array, written
from collectives.names import AUTOMATIC, KINDS, OPS
from collectives.plain_calls import run_plain

if TYPE_CHECKING:
    from collectives.caller import Caller

ndarray = np.ndarray
_empty = np.empty

_Method = TypeVar("_Method", bound=Callable[..., Any])

_PREPARED = ffi.new("coll_call[]", len(KINDS) * len(OPS))  # lives as long as the addresses


def _prepare(kind: str, op: str, place: int) -> int:
    """Return the address of the call of a kind and operation."""
    call = _PREPARED[place]
    call.size = ffi.sizeof("coll_call")
    call.kind, call.op = KINDS[kind], OPS[op]
    call.algorithm, call.mode, call.timeout, call.accumulate, call.reproducible = AUTOMATIC
    return int(ffi.cast("uintptr_t", ffi.addressof(_PREPARED, place)))


# Addresses of calls without arrays, dtype and root; what folds nothing has "sum".
CALLS: dict[str, dict[str, int]] = {
    kind: {op: _prepare(kind, op, len(OPS) * i + j) for j, op in enumerate(OPS)}
    for i, kind in enumerate(KINDS)
}
_ALLGATHER = CALLS["allgather"]["sum"]
_ALLTOALL = CALLS["alltoall"]["sum"]
_BARRIER = CALLS["barrier"]["sum"]
_BROADCAST = CALLS["broadcast"]["sum"]
_GATHER = CALLS["gather"]["sum"]
_SCATTER = CALLS["scatter"]["sum"]


def _raise_failure(status: int) -> None:
    """Raise the error of a call that failed, if it was made at all."""
    if status > 0:
        check(status)


def _served(comm: Caller, status: int, call: int, x: Any, out: Any) -> bool:
    """Raise the error of a call that failed; make one on tensors that was not made as it is."""
    _raise_failure(status)
    array, into = as_array(x), None if out is None else as_array(out)
    if array is None or (into is None and out is not None):
        return False
    status = run_plain(comm._door, call, array, into, 0)
    _raise_failure(status)
    if not status:
        written(x if out is None else out)
    return not status


def _with_op(calls: dict[str, int], options: dict[str, Any]) -> int:
    """Return the call where nothing but an operation of the table is asked for; else 0."""
    op = options.get("op")
    return calls.get(op, 0) if type(op) is str and len(options) == 1 else 0


def alike(long: _Method) -> _Method:
    """Allreduce, scan and exscan: the result is as large as the input."""
    calls = CALLS[long.__name__]
    sums = calls["sum"]

    @wraps(long)
    def method(comm: Caller, x: Any, out: Any = None, **options: Any) -> Any:
        if comm._plain and (call := _with_op(calls, options) if options else sums):
            status = run_plain(comm._door, call, x, out, 0)
            if not status or _served(comm, status, call, x, out):
                return x if out is None else out
        return long(comm, x, out, **options)

    return cast("_Method", method)


def reduce(long: _Method) -> _Method:
    """Reduce to one rank."""
    calls = CALLS["reduce"]

    @wraps(long)
    def method(
        comm: Caller, x: Any, out: Any = None, *, op: Any = "sum", root: Any = 0, **options: Any
    ) -> Any:
        if comm._plain and not options and type(op) is str and op in calls:
            here = comm._handle.rank == root
            status = run_plain(comm._door, calls[op], x, out if here else None, root)
            if not status:
                return None if not here else x if out is None else out
            _raise_failure(status)
        return long(comm, x, out, op=op, root=root, **options)

    return cast("_Method", method)


def broadcast(long: _Method) -> _Method:
    """Give all what one rank has."""

    @wraps(long)
    def method(comm: Caller, x: Any, root: Any = 0, **options: Any) -> Any:
        if comm._plain and not options:
            status = run_plain(comm._door, _BROADCAST, x, None, root)
            if not status:
                return x
            _raise_failure(status)
        return long(comm, x, root, **options)

    return cast("_Method", method)


def alltoall(long: _Method) -> _Method:
    """Exchange parts."""

    @wraps(long)
    def method(comm: Caller, x: Any, out: Any = None, **options: Any) -> Any:
        if comm._plain and not options:
            status = run_plain(comm._door, _ALLTOALL, x, out, 0)
            if not status:
                return x if out is None else out
            _raise_failure(status)
        return long(comm, x, out, **options)

    return cast("_Method", method)


def reduce_scatter(long: _Method) -> _Method:
    """Reduce, a part for each."""
    calls = CALLS["reduce_scatter"]

    @wraps(long)
    def method(comm: Caller, x: Any, out: Any = None, *, op: Any = "sum", **options: Any) -> Any:
        known = not options and type(op) is str and op in calls
        if known and comm._plain and (out is not None or (type(x) is ndarray and x.ndim)):
            result = _part(x, comm._handle.size) if out is None else out
            status = run_plain(comm._door, calls[op], x, result, 0)
            if not status or _served(comm, status, calls[op], x, result):
                return result
        return long(comm, x, out, op=op, **options)

    return cast("_Method", method)


def allgather(long: _Method) -> _Method:
    """Join all, for all."""

    @wraps(long)
    def method(comm: Caller, x: Any, out: Any = None, **options: Any) -> Any:
        if comm._plain and not options and (out is not None or type(x) is ndarray):
            result = _joined(x, comm._handle.size) if out is None else out
            status = run_plain(comm._door, _ALLGATHER, x, result, 0)
            if not status or _served(comm, status, _ALLGATHER, x, result):
                return result
        return long(comm, x, out, **options)

    return cast("_Method", method)


def gather(long: _Method) -> _Method:
    """Join all, for one rank."""

    @wraps(long)
    def method(comm: Caller, x: Any, out: Any = None, *, root: Any = 0, **options: Any) -> Any:
        if comm._plain and not options and type(x) is ndarray:
            result = None
            if comm._handle.rank == root:
                result = _joined(x, comm._handle.size) if out is None else out
            status = run_plain(comm._door, _GATHER, x, result, root)
            if not status:
                return result
            _raise_failure(status)
        return long(comm, x, out, root=root, **options)

    return cast("_Method", method)


def scatter(long: _Method) -> _Method:
    """Hand out parts."""

    @wraps(long)
    def method(comm: Caller, x: Any, out: Any = None, *, root: Any = 0, **options: Any) -> Any:
        here = comm._handle.rank == root
        # What hands nothing in is not looked at.
        given, result = x if here else None, x if out is None and not here else out
        looked_at = x if here else result
        if comm._plain and not options and type(looked_at) is ndarray and looked_at.ndim:
            if result is None:
                result = _part(x, comm._handle.size)
            status = run_plain(comm._door, _SCATTER, given, result, root)
            if not status:
                return result
            _raise_failure(status)
        return long(comm, x, out, root=root, **options)

    return cast("_Method", method)


def barrier(long: _Method) -> _Method:
    """Meet."""

    @wraps(long)
    def method(comm: Caller, **options: Any) -> Any:
        if comm._plain and not options:
            status = run_plain(comm._door, _BARRIER, None, None, 0)
            if not status:
                return None
            _raise_failure(status)
        return long(comm, **options)

    return cast("_Method", method)


def _joined(x: Any, size: int) -> Any:
    """Return a new array for ``size`` parts like ``x``."""
    if x.ndim == 1:  # no tuple is made: it takes as long as the call
        return _empty(size * len(x), x.dtype)
    shape = x.shape
    return _empty((size * shape[0], *shape[1:]) if shape else (size,), x.dtype)


def _part(x: Any, size: int) -> Any:
    """Return a new array for one of ``size`` parts of ``x``."""
    if x.ndim == 1:
        return _empty(len(x) // size, x.dtype)
    return _empty((len(x) // size, *x.shape[1:]), x.dtype)
