# SPDX-License-Identifier: Apache-2.0
"""The short way of a call on plain NumPy arrays: what a small collective can afford.

An 8-byte allreduce takes a tenth of a microsecond; looking at two arrays and eleven arguments takes
thirty times as long. All collectives of equal parts therefore share one short way: ``run_plain`` of
the compiled module (native/bindings/plain.c) asks the buffer protocol, compares shapes and makes
the call, which was prepared for its operation. Here is what only Python knows: which arrays a rank
hands in and gets, and how to make a result.

What is not plain, in arrays or options, is never judged here: then a function returns MISSED,
before anything was sent or written, and the long way serves the call or says what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collectives._ffi import ffi
from collectives.names import AUTOMATIC, KINDS, OPS

if TYPE_CHECKING:
    from collectives.caller import Caller

ndarray = np.ndarray
_empty = np.empty

# What a function returns that has done nothing.
MISSED: Any = object()

# What a look-up of an operation raises that is not in the table.
NO_OP = (KeyError, TypeError)

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
_REDUCE = CALLS["reduce"]
_REDUCE_SCATTER = CALLS["reduce_scatter"]
_SCATTER = CALLS["scatter"]["sum"]


def alike(comm: Caller, kind: str, x: Any, out: Any, op: Any) -> Any:
    """Make a scan or exscan: the result is as large as the input."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    try:
        call = CALLS[kind][op]
    except NO_OP:
        return MISSED
    done = comm._handle.run_plain(kind, call, x, out, 0)
    return MISSED if not done else x if out is None else out


def reduce(comm: Caller, x: Any, out: Any, op: Any, root: int) -> Any:
    """:meth:`Communicator.reduce`, or MISSED."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    try:
        call = _REDUCE[op]
    except NO_OP:
        return MISSED
    handle = comm._handle
    if handle.rank != root:
        return None if handle.run_plain("reduce", call, x, None, root) else MISSED
    done = handle.run_plain("reduce", call, x, out, root)
    return MISSED if not done else x if out is None else out


def broadcast(comm: Caller, x: Any, root: int) -> Any:
    """:meth:`Communicator.broadcast`, or MISSED."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    return x if comm._handle.run_plain("broadcast", _BROADCAST, x, None, root) else MISSED


def alltoall(comm: Caller, x: Any, out: Any) -> Any:
    """:meth:`Communicator.alltoall`, or MISSED."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    done = comm._handle.run_plain("alltoall", _ALLTOALL, x, out, 0)
    return MISSED if not done else x if out is None else out


def reduce_scatter(comm: Caller, x: Any, out: Any, op: Any) -> Any:
    """:meth:`Communicator.reduce_scatter`, or MISSED."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    handle = comm._handle
    try:
        call = _REDUCE_SCATTER[op]
        result = _part(x, handle.size) if out is None else out
    except NO_OP:
        return MISSED
    return result if handle.run_plain("reduce_scatter", call, x, result, 0) else MISSED


def allgather(comm: Caller, x: Any, out: Any) -> Any:
    """:meth:`Communicator.allgather`, or MISSED."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    handle = comm._handle
    result = _joined(x, handle.size) if out is None else out
    return result if handle.run_plain("allgather", _ALLGATHER, x, result, 0) else MISSED


def gather(comm: Caller, x: Any, out: Any, root: int) -> Any:
    """:meth:`Communicator.gather`, or MISSED."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    handle = comm._handle
    if handle.rank != root:
        return None if handle.run_plain("gather", _GATHER, x, None, root) else MISSED
    result = _joined(x, handle.size) if out is None else out
    return result if handle.run_plain("gather", _GATHER, x, result, root) else MISSED


def scatter(comm: Caller, x: Any, out: Any, root: int) -> Any:
    """:meth:`Communicator.scatter`, or MISSED."""
    handle = comm._handle
    here = handle.rank == root
    if not here:  # what hands nothing in is not looked at
        x, out = None, x if out is None else out
    if not comm._plain or type(x if here else out) is not ndarray:
        return MISSED
    try:
        result = _part(x, handle.size) if out is None else out
    except TypeError:
        return MISSED
    return result if handle.run_plain("scatter", _SCATTER, x, result, root) else MISSED


def barrier(comm: Caller) -> bool:
    """:meth:`Communicator.barrier`; whether it was made."""
    return comm._plain and comm._handle.run_plain("barrier", _BARRIER, None, None, 0)


def _joined(x: Any, size: int) -> Any:
    """Return a new array for ``size`` parts like ``x``."""
    if x.ndim == 1:  # no tuple is made: it takes as long as the call
        return _empty(size * len(x), x.dtype)
    shape = x.shape
    return _empty((size * shape[0], *shape[1:]) if shape else (size,), x.dtype)


def _part(x: Any, size: int) -> Any:
    """Return a new array for one of ``size`` parts of ``x``; TypeError where it has no axis."""
    if x.ndim == 1:
        return _empty(len(x) // size, x.dtype)
    return _empty((len(x) // size, *x.shape[1:]), x.dtype)
