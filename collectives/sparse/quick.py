# SPDX-License-Identifier: Apache-2.0
"""The short way of an allreduce of a :class:`Sparse` of NumPy's arrays, without any option.

To look at two arrays in every way, and at options that nobody has given, costs several times what
two ranks take to add up a hundred elements: here C does it (native/bindings/plain_sparse.c). What
is not as usual is not judged there: then nothing was done, and the long way serves the call, or
says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from collectives._ffi import ffi, lib
from collectives.arrays import as_integers
from collectives.names import KINDS, OPS
from collectives.plain_calls import run_plain_sparse
from collectives.sparse.vector import Sparse

if TYPE_CHECKING:
    from collectives.caller import Caller

_Method = TypeVar("_Method", bound=Callable[..., Any])

# What is as if an option were not there.
_NOTHING: dict[str, tuple[Any, ...]] = {
    "algorithm": (None, "auto"),
    "output": (None, "auto"),
    "coding": (None, "auto"),
    "async_op": (False,),
    "reproducible": (False,),
} | dict.fromkeys(("accumulate", "compress", "dense_above", "largest", "mode", "timeout"), (None,))

_AS_IT_IS = -1  # dtype of values that C knows
_PREPARED = ffi.new("coll_sparse_call[]", len(OPS))  # lives as long as the addresses


def _prepare(op: str, place: int) -> int:
    """Return the address of the call of an operation."""
    call = _PREPARED[place]
    call.size = ffi.sizeof("coll_sparse_call")
    call.kind, call.op = KINDS["allreduce"], OPS[op]
    call.algorithm = lib.COLL_SPARSE_CHOOSE
    return int(ffi.cast("uintptr_t", ffi.addressof(_PREPARED, place)))


_CALLS = {op: _prepare(op, place) for place, op in enumerate(OPS)}


def first(long: _Method) -> _Method:
    """Serve what is usual before the method of an allreduce looks at its options."""

    @wraps(long)
    def method(comm: Caller, x: Any, out: Any = None, **options: Any) -> Any:
        if type(x) is Sparse and out is None and not (options and _given(options)):
            found = allreduce(comm, x, options.get("op", "sum"))
            if found is not None:
                return found
        return long(comm, x, out, **options)

    return cast("_Method", method)


def _given(options: dict[str, Any]) -> bool:
    """Whether something but the operation is asked for, or what no option means."""
    return any(not _is_nothing(name, wish) for name, wish in options.items() if name != "op")


def _is_nothing(name: str, wish: Any) -> bool:
    known = _NOTHING.get(name, ())
    return wish in known if type(wish) is str else any(wish is nothing for nothing in known)


def allreduce(comm: Caller, x: Sparse, op: Any) -> Any:
    """Make the call if it is a usual one, and return its result; else None."""
    call = _CALLS.get(op) if type(op) is str else None
    if call is None or not comm._plain:
        return None
    found = _made(comm, call, x, x.values, _AS_IT_IS)
    if found is not None or (seen := as_integers(x.values)) is None:
        return found
    found = _made(comm, call, x, *seen)  # a dtype that C does not see in NumPy's arrays
    if type(found) is Sparse:
        found.values = found.values.view(x.values.dtype)
        return found
    return None if found is None else found.view(x.values.dtype)


def _made(comm: Caller, call: int, x: Sparse, values: Any, dtype: int) -> Any:
    found = run_plain_sparse(comm._door, call, x.indices, values, x.length, dtype)
    if type(found) is tuple:
        return Sparse.of_result(found[0], found[1], x.length)
    if type(found) is not int:
        return found
    if found > 0:
        comm._handle.told("sparse allreduce", found)
    return None
