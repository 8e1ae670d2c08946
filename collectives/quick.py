# SPDX-License-Identifier: Apache-2.0
"""The short way of a call on plain NumPy arrays: what a small collective can afford.

An 8-byte allreduce takes a tenth of a microsecond; looking at two arrays and eleven arguments takes
thirty times as long. All collectives of equal parts therefore share one short way:

* What does not depend on the arrays is prepared once per operation, root and dtype: :class:`Calls`.
* Of the arrays only the buffer protocol is asked, which refuses whatever is not plain: strided,
  read-only where it is written, or of a dtype that it does not know. What it does not tell, whether
  shapes fit, is one comparison.
* One call with five arguments goes to the native layer, which knows the calls of late again.

What is not plain, in arrays or options, is never judged here: the function returns MISSED, before
anything was sent or written, and the long way serves the call or says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from collectives._ffi import ffi
from collectives.arrays import dtype_code
from collectives.names import AUTOMATIC, KINDS, OPS

if TYPE_CHECKING:
    from collectives.caller import Caller

Dtype: TypeAlias = "np.dtype[Any]"
Shape: TypeAlias = tuple[int, ...]
Shaped: TypeAlias = Callable[[Any, Any, int], Any]

BYTES = ffi.typeof("char[]")
from_buffer = ffi.from_buffer
ndarray = np.ndarray
_empty = np.empty
_NOTHING = ffi.NULL
_UINT8 = np.dtype(np.uint8)

# What says that arrays or options are not plain.
NOT_PLAIN = (KeyError, TypeError, ValueError, BufferError)

# What a function returns that has done nothing.
MISSED: Any = object()


class Prepared(dict[Dtype, Any]):
    """A ``coll_call`` for each dtype, without arrays."""

    def __init__(self, kind: str, root: int, op: str) -> None:
        """Nothing is made before it is asked for; KeyError for what is no operation."""
        super().__init__()
        self._kind, self._root, self._op = KINDS[kind], root, OPS[op]

    def __missing__(self, dtype: Dtype) -> Any:
        """Make the call of a dtype; KeyError where the buffer protocol does not know it."""
        call = ffi.new("coll_call *")
        call.size = ffi.sizeof("coll_call")
        call.kind, call.root, call.op = self._kind, self._root, self._op
        call.dtype = dtype_code(dtype)
        call.algorithm, call.mode, call.timeout, call.accumulate = AUTOMATIC
        self[dtype] = call
        return call


class Calls(dict[str, Prepared]):
    """The prepared calls of a kind, by operation; what folds nothing has them under "sum"."""

    def __init__(self, kind: str, root: int = 0) -> None:
        """Nothing is made before it is asked for."""
        super().__init__()
        self.kind, self.root = kind, root

    def __missing__(self, op: str) -> Prepared:
        """Make those of an operation."""
        self[op] = made = Prepared(self.kind, self.root, op)
        return made


class Rooted(dict[int, Calls]):
    """The prepared calls of a kind with a root, by root."""

    def __init__(self, kind: str) -> None:
        """Nothing is made before it is asked for."""
        super().__init__()
        self.kind = kind

    def __missing__(self, root: int) -> Calls:
        """Make those of a root."""
        self[root] = made = Calls(self.kind, root)
        return made

    def of(self, comm: Caller, root: int) -> Calls | None:
        """Return those of a rank of a communicator; None for what is none."""
        # Before the look-up, which would take True and 1.0 for 1.
        return self[root] if type(root) is int and 0 <= root < comm._handle.size else None


_SCANS, _EXSCANS, _ALLTOALLS = Calls("scan"), Calls("exscan"), Calls("alltoall")
_REDUCE_SCATTERS, _ALLGATHERS = Calls("reduce_scatter"), Calls("allgather")
_REDUCES, _BROADCASTS = Rooted("reduce"), Rooted("broadcast")
_GATHERS, _SCATTERS = Rooted("gather"), Rooted("scatter")
_BARRIER = Calls("barrier")["sum"][_UINT8]


def pointers(x: Any, out: Any) -> tuple[Any, Any]:
    """Return the addresses of a plain input and output of one shape; raise one of NOT_PLAIN."""
    if out is None:
        both = from_buffer(BYTES, x, True)
        return both, both
    if type(out) is not ndarray or out.dtype is not x.dtype or out.shape != x.shape:
        raise TypeError
    return from_buffer(BYTES, x), from_buffer(BYTES, out, True)


def _target(x: Any, out: Any, shape: Shape, other: Shape) -> Any:
    """Return a plain output of the dtype of ``x`` and one of two shapes; else raise TypeError.

    Where there is none, a new one gets the first shape.
    """
    if out is None:
        return _empty(shape, x.dtype)
    if type(out) is not ndarray or out.dtype is not x.dtype:
        raise TypeError
    if out.shape != shape and out.shape != other:
        raise TypeError
    return out


def _joined(x: Any, out: Any, size: int) -> Any:
    """Return the output for ``size`` parts like ``x``."""
    shape = x.shape
    stacked = (size, *shape)
    return _target(x, out, (size * shape[0], *shape[1:]) if shape else stacked, stacked)


def _part(x: Any, out: Any, size: int) -> Any:
    """Return the output for one of ``size`` equal parts of ``x``; raise one of NOT_PLAIN."""
    rows, rest = divmod(len(x), size)
    if rest:
        raise ValueError
    row = x.shape[1:]
    shape = (rows, *row)
    return _target(x, out, shape, row if rows == 1 else shape)


def _alike(comm: Caller, calls: Calls, op: str, x: Any, out: Any) -> Any:
    """Make a call whose result is as large as its input."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    try:
        call = calls[op][x.dtype]
        source, result = pointers(x, out)
    except NOT_PLAIN:
        return MISSED
    comm._handle.run_on(calls.kind, call, source, result, x.size)
    return x if out is None else out


def _apart(comm: Caller, calls: Calls, op: str, x: Any, out: Any, shaped: Shaped) -> Any:
    """Make a call whose result is larger or smaller than its input, of which it says the count."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    handle = comm._handle
    try:
        call = calls[op][x.dtype]
        result = shaped(x, out, handle.size)
        source, place = from_buffer(BYTES, x), from_buffer(BYTES, result, True)
    except NOT_PLAIN:
        return MISSED
    handle.run_on(calls.kind, call, source, place, x.size)
    return result


def _handed_in(comm: Caller, calls: Calls, op: str, x: Any) -> Any:
    """Make a call that gives this rank nothing: None."""
    if not comm._plain or type(x) is not ndarray:
        return MISSED
    try:
        call, source = calls[op][x.dtype], from_buffer(BYTES, x)
    except NOT_PLAIN:
        return MISSED
    comm._handle.run_on(calls.kind, call, source, _NOTHING, x.size)
    return None


def scan(comm: Caller, x: Any, out: Any, op: Any) -> Any:
    """:meth:`Communicator.scan`, or MISSED."""
    return _alike(comm, _SCANS, op, x, out)


def exscan(comm: Caller, x: Any, out: Any, op: Any) -> Any:
    """:meth:`Communicator.exscan`, or MISSED."""
    return _alike(comm, _EXSCANS, op, x, out)


def broadcast(comm: Caller, x: Any, root: int) -> Any:
    """:meth:`Communicator.broadcast`, or MISSED."""
    calls = _BROADCASTS.of(comm, root)
    return MISSED if calls is None else _alike(comm, calls, "sum", x, None)


def alltoall(comm: Caller, x: Any, out: Any) -> Any:
    """:meth:`Communicator.alltoall`, or MISSED."""
    if type(x) is not ndarray or not x.ndim or len(x) % comm._handle.size:
        return MISSED
    return _alike(comm, _ALLTOALLS, "sum", x, out)


def reduce(comm: Caller, x: Any, out: Any, op: Any, root: int) -> Any:
    """:meth:`Communicator.reduce`, or MISSED."""
    calls = _REDUCES.of(comm, root)
    if calls is None:
        return MISSED
    here = comm._handle.rank == root
    return _alike(comm, calls, op, x, out) if here else _handed_in(comm, calls, op, x)


def reduce_scatter(comm: Caller, x: Any, out: Any, op: Any) -> Any:
    """:meth:`Communicator.reduce_scatter`, or MISSED."""
    return _apart(comm, _REDUCE_SCATTERS, op, x, out, _part)


def allgather(comm: Caller, x: Any, out: Any) -> Any:
    """:meth:`Communicator.allgather`, or MISSED."""
    return _apart(comm, _ALLGATHERS, "sum", x, out, _joined)


def gather(comm: Caller, x: Any, out: Any, root: int) -> Any:
    """:meth:`Communicator.gather`, or MISSED."""
    calls = _GATHERS.of(comm, root)
    if calls is None:
        return MISSED
    here = comm._handle.rank == root
    return (
        _apart(comm, calls, "sum", x, out, _joined) if here else _handed_in(comm, calls, "sum", x)
    )


def scatter(comm: Caller, x: Any, out: Any, root: int) -> Any:
    """:meth:`Communicator.scatter`, or MISSED."""
    calls, handle = _SCATTERS.of(comm, root), comm._handle
    here = handle.rank == root
    result = x if out is None else out
    if calls is None or not comm._plain or type(x if here else result) is not ndarray:
        return MISSED
    try:
        if here:
            result, source = _part(x, out, handle.size), from_buffer(BYTES, x)
        else:
            source = _NOTHING
        call, place = calls["sum"][result.dtype], from_buffer(BYTES, result, True)
    except NOT_PLAIN:
        return MISSED
    handle.run_on("scatter", call, source, place, result.size)
    return result


def barrier(comm: Caller) -> bool:
    """:meth:`Communicator.barrier`; whether it was made."""
    if not comm._plain:
        return False
    comm._handle.run_on("barrier", _BARRIER, _NOTHING, _NOTHING, 0)
    return True
