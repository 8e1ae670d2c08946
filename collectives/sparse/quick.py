# SPDX-License-Identifier: Apache-2.0
"""The short way of an allreduce of a :class:`Sparse` of NumPy's arrays, without any option.

To look at two arrays in every way, and at options that nobody has given, costs several times what
two ranks take to add up a hundred elements. What is not as usual is not judged here: then nothing
was done, and the long way serves the call, or says what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collectives import arrays
from collectives._ffi import ffi, lib
from collectives.names import KINDS, OPS
from collectives.sparse.calls import Ready, made
from collectives.sparse.conversion import Converted, Shape
from collectives.sparse.vector import INDEX_DTYPES, Sparse

if TYPE_CHECKING:
    from collectives.caller import Caller

_REQUEST = ffi.typeof("coll_sparse_call *")


def _usual() -> Any:
    request = ffi.new(_REQUEST)
    request.size = ffi.sizeof("coll_sparse_call")
    request.kind = KINDS["allreduce"]
    request.algorithm = lib.COLL_SPARSE_CHOOSE
    return request[0]


_USUAL = _usual()


def allreduce(comm: Caller, x: Sparse, op: Any) -> Any:
    """Make the call if it is a usual one, and return its result; else None."""
    code = OPS.get(op) if type(op) is str else None
    if code is None or not comm._plain:
        return None
    places, values = arrays.readable(x.indices), arrays.readable(x.values)
    if places is None or values is None or places[1] != values[1]:
        return None
    if places[2] not in INDEX_DTYPES or x.indices.ndim != 1 or x.values.ndim != 1:
        return None
    request = ffi.new(_REQUEST, _USUAL)
    request.op = code
    request.indices, request.entries, request.index_dtype = places
    request.values, _, request.dtype = values
    request.length = x.length
    return made(
        comm, "allreduce", Ready(request, _whole(x), x.indices, values[2], (places, values))
    )


def _whole(x: Sparse) -> Converted:
    return Converted(x, "", (x.length,), _as_found, _as_found)


def _as_found(found: Any, _: Shape) -> Any:
    return found
