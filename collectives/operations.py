# SPDX-License-Identifier: Apache-2.0
"""Reductions that a program brings itself: :func:`op`."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from collectives._ffi import check, ffi, lib
from collectives.arrays import numpy_dtype
from collectives.errors import AbortedError, CollectiveError, InvalidArgumentError

_FUNCTION = ffi.typeof("coll_op_function")

_FIRST_ADDRESS = 4096  # no system maps the first page: whatever points there is a slip

_CDATA = type(ffi.NULL)  # of all that cffi makes
_CTYPES_FUNCTION: Any = ctypes.CFUNCTYPE(None).__mro__[1]  # of all of ctypes' function pointers

_living: weakref.WeakValueDictionary[int, Operation] = weakref.WeakValueDictionary()


USER_OPS = 128
"""Operations of the program have numbers from here on."""


class Operation:
    """A reduction made by :func:`op`: pass it as ``op=`` to a collective that folds."""

    def __init__(self, function: Any, name: str, commutative: bool, keep: object) -> None:
        """Register a C function with the native layer. Users call op()."""
        number = ffi.new("int32_t *")
        word = name.encode("utf-8", "replace")
        check(lib.coll_op_create(function, ffi.NULL, int(commutative), word, number))
        self.name = name
        self.commutative = commutative
        self.code: int = number[0]
        self.failure: BaseException | None = None
        self._keep = (function, keep)  # what the native layer calls must not be collected
        _living[self.code] = self
        weakref.finalize(self, lib.coll_op_free, self.code)

    def __repr__(self) -> str:
        """Tell the name."""
        commutes = "" if self.commutative else ", not commutative"
        return f"<Operation {self.name}{commutes}>"


Op: TypeAlias = str | Operation


def op(function: Any, *, commutative: bool, name: str | None = None) -> Operation:
    """Make a reduction of a function: fast from C, slowly from Python.

    Args:
        function: a C function ``int32_t f(const void *left, void *right, size_t count,
            int32_t dtype, void *context)``, which sets ``right[i] = left[i] op right[i]``
            and returns 0 (else the communicator ends on all ranks), as a cffi or ctypes
            function pointer, an object with an ``address`` (numba's ``cfunc``), or
            its address as an int; or a Python callable ``f(left, right)`` of two one-dimensional
            NumPy arrays, which returns the array of results. ``left`` is of the lower ranks. It
            must be associative. ``dtype`` is a number of ``coll_dtype``.
        commutative: whether ``left op right`` equals ``right op left``. If not, only algorithms
            that keep the order of ranks are used; naming another raises UnsupportedError.
        name: for messages; by default the function's own.

    All ranks make their operations in the same order: the library tells them by their number.
    Number, name and ``commutative`` are compared in every call; that the functions of all ranks
    compute the same cannot be. At most 128 exist at a time; an operation ends when nothing refers
    to it any more, no call in flight and no persistent call either. What a Python callable raises
    ends the communicator on all ranks, as CollectiveError; so does a result whose dtype does not
    fit the operands' (complex for float64, float64 for int32).
    """
    called = str(name or getattr(function, "__name__", "operation"))
    pointer = _pointer(function)
    if pointer is not None:
        return Operation(pointer, called, commutative, function)
    if not callable(function):
        raise InvalidArgumentError(
            f"op: {function!r} is no function: give a C function pointer, its address, or a "
            "Python callable of two arrays"
        )
    return _from_python(function, called, commutative)


def operation_of(code: int) -> Operation | None:
    """Return the operation of this number, None for a built-in one. Who calls later keeps it."""
    return _living.get(code) if code >= USER_OPS else None


def raise_failure_of(operation: Operation | None, call: str, error: CollectiveError) -> None:
    """Raise what a Python callable raised here, if that is why the call has ended."""
    if operation is None or operation.failure is None:
        return
    failure = operation.failure
    raise AbortedError(
        f"{call}: operation {operation.name} raised {type(failure).__name__}: {failure}", error.rank
    ) from failure


def _pointer(function: Any) -> Any | None:
    """Return the C function that something points to, None for what is no pointer."""
    address = function if isinstance(function, int) else getattr(function, "address", None)
    if isinstance(function, _CDATA):
        address = _address(function)
    elif address is None and isinstance(function, _CTYPES_FUNCTION):
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
    if isinstance(address, bool) or not isinstance(address, int):
        return None
    if not _FIRST_ADDRESS <= address <= sys.maxsize:
        raise InvalidArgumentError(
            f"op: {address} is no address of a function: give a C function pointer (cffi, ctypes, "
            "numba's cfunc), its address, or a Python callable of two arrays"
        )
    return ffi.cast(_FUNCTION, address)


def _address(made: Any) -> int:
    """Return where a pointer of cffi points to, 0 for what is none."""
    try:
        return int(ffi.cast("intptr_t", made))
    except TypeError:  # a struct, say
        return 0


def _breadth(dtype: np.dtype[Any]) -> int:
    """Order dtypes by what an assignment to a narrower one drops without a word."""
    if dtype.names:
        return 5
    return {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}.get(dtype.kind, 4)


def _from_python(function: Callable[[Any, Any], Any], name: str, commutative: bool) -> Operation:
    made: list[weakref.ref[Operation]] = []

    def fold(left: Any, right: Any, count: int, dtype: int, _: Any) -> int:
        kind = numpy_dtype(dtype)
        size = count * kind.itemsize
        target = np.frombuffer(ffi.buffer(right, size), kind)
        result = np.asarray(function(np.frombuffer(ffi.buffer(left, size), kind), target.copy()))
        if result.shape != target.shape:
            raise InvalidArgumentError(
                f"it returned shape {result.shape} for operands of shape {target.shape}"
            )
        if _breadth(result.dtype) > _breadth(kind):
            raise InvalidArgumentError(
                f"it returned {result.dtype} for operands of {kind}, which would lose part of the "
                f"values: return an array of {kind}"
            )
        target[...] = result
        return 0

    def failed(_: Any, error: BaseException, __: Any) -> None:
        operation = made[0]()
        if operation is not None and operation.failure is None:
            operation.failure = error

    pointer = ffi.callback(_FUNCTION, fold, error=1, onerror=failed)
    operation = Operation(pointer, name, commutative, fold)
    made.append(weakref.ref(operation))
    return operation
