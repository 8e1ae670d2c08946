# SPDX-License-Identifier: Apache-2.0
"""The short way of a call on plain NumPy arrays: what a small collective can afford.

An 8-byte allreduce takes a tenth of a microsecond; looking at two arrays and eleven arguments takes
ten times as long. What does not depend on the arrays is therefore prepared, once per operation and
dtype, and of the arrays only the buffer protocol is asked, which refuses whatever is not plain:
strided, read-only where it is written, or of a dtype that it does not know.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from collectives._ffi import ffi
from collectives.arrays import dtype_code
from collectives.names import AUTOMATIC, KINDS, OPS

Dtype: TypeAlias = "np.dtype[Any]"

_BYTES = ffi.typeof("char[]")
_from_buffer = ffi.from_buffer

# What says that arrays or options are not plain: the long way then says what is wrong, if anything.
NOT_PLAIN = (KeyError, TypeError, ValueError, BufferError)


class Prepared(dict[Dtype, Any]):
    """A ``coll_call`` of one kind and operation for each dtype, without arrays."""

    def __init__(self, kind: str, op: str) -> None:
        """Nothing is made before it is asked for."""
        super().__init__()
        self._kind, self._op = KINDS[kind], OPS[op]

    def __missing__(self, dtype: Dtype) -> Any:
        """Make the call of a dtype; KeyError where the buffer protocol does not know it."""
        call = ffi.new("coll_call *")
        call.size = ffi.sizeof("coll_call")
        call.kind, call.op, call.dtype = self._kind, self._op, dtype_code(dtype)
        call.algorithm, call.mode, call.timeout, call.accumulate = AUTOMATIC
        self[dtype] = call
        return call


def prepared(kind: str) -> dict[str, Prepared]:
    """Return the prepared calls of a kind, by operation."""
    return {op: Prepared(kind, op) for op in OPS}


def pointers(x: Any, out: Any) -> tuple[Any, Any]:
    """Return the addresses of a plain input and output of one shape; raise one of NOT_PLAIN."""
    if out is None:
        both = _from_buffer(_BYTES, x, True)
        return both, both
    if type(out) is not np.ndarray or out.dtype is not x.dtype or out.shape != x.shape:
        raise TypeError
    return _from_buffer(_BYTES, x), _from_buffer(_BYTES, out, True)
