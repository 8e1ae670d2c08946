# SPDX-License-Identifier: Apache-2.0
"""Sums of sparse arrays in the memory of a GPU: of ``cl.Sparse`` and of cupyx.scipy.sparse.

CuPy is never imported here: who passes one of its arrays has done it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collectives import gpu_arrays
from collectives._ffi import ffi, lib
from collectives.arrays import NAMES, Operand
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.gpu_streams import follow, lead
from collectives.names import checked_seconds, op_code
from collectives.sparse.vector import Sparse

if TYPE_CHECKING:
    from collectives.caller import Caller
    from collectives.sparse.calls import SparseCall, SparseOptions

FLOATS = ("float32", "float64", "float16", "bfloat16")
_INDICES = {"int32": 4, "uint32": 4, "int64": 8, "uint64": 8}
MOST = 1 << 31
_FORMS = ("csr", "csc", "coo")


class OnGpu(NamedTuple):
    """A sparse array as a vector, and the way back for results."""

    indices: Operand
    values: Operand
    length: int
    agreed: str  # what all ranks must say of it
    back: Callable[[Any, Any], Any]  # from indices and values
    back_dense: Callable[[Any], Any]  # from all values


def of_cupyx(x: Any) -> bool:
    """Whether ``x`` is one of cupyx.scipy.sparse."""
    module = sys.modules.get("cupyx.scipy.sparse")
    return module is not None and bool(module.issparse(x))


def is_on_gpu(x: Any) -> bool:
    """Whether ``x`` is a sparse array in the memory of a GPU."""
    if type(x) is Sparse:
        return type(x.values) is not np.ndarray and x.device >= 0
    return of_cupyx(x)


def taken(x: Any, what: str) -> OnGpu:
    """Return a sparse array as a vector; ``what`` opens the sentence of an error."""
    found = _of_vector(x, what) if type(x) is Sparse else _of_matrix(x, what)
    dtype, index = NAMES[found.values.dtype], NAMES[found.indices.dtype]
    if dtype not in FLOATS:
        raise UnsupportedError(
            f"{what} is {dtype} on a GPU, where sparse arrays are {', '.join(FLOATS)} so far"
        )
    if index not in _INDICES:
        raise UnsupportedError(
            f"{what} has indices of {index} on a GPU, where they are {', '.join(_INDICES)} so far"
        )
    if found.length > MOST:
        raise UnsupportedError(
            f"{what} has {found.length} elements on a GPU, where sparse arrays have 2^31 at most "
            "so far"
        )
    return found


def _of_vector(x: Sparse, what: str) -> OnGpu:
    places, values = x.operands(what)
    length = x.length
    return OnGpu(
        places, values, length, "", lambda i, v: Sparse.of_result(i, v, length), lambda v: v
    )


def _of_matrix(x: Any, what: str) -> OnGpu:
    """Return a csr, csc or coo matrix as a vector of its rows, of csc of its columns."""
    form, (rows, columns) = x.format, (int(side) for side in x.shape)
    if form not in _FORMS:
        raise InvalidArgumentError(
            f"{what} is a {form} matrix on a GPU: csr, csc and coo are taken, as x.tocsr() gives "
            "them"
        )
    by_columns = form == "csc"
    side = rows if by_columns else columns
    entries = _in_order(x).tocoo()
    outer, inner = (entries.col, entries.row) if by_columns else (entries.row, entries.col)
    places = outer.astype("int64") * side + inner
    module: Any = sys.modules["cupyx.scipy.sparse"]

    def back(indices: Any, values: Any) -> Any:
        far = indices // side
        near = indices - far * side
        coordinates = (near, far) if by_columns else (far, near)
        return module.coo_matrix((values, coordinates), shape=(rows, columns)).asformat(form)

    return OnGpu(
        gpu_arrays.anywhere(places, what),
        gpu_arrays.anywhere(entries.data, what),
        rows * columns,
        f"{form} {rows} x {columns}",
        back,
        lambda values: values.reshape((rows, columns), order="F" if by_columns else "C"),
    )


def _in_order(x: Any) -> Any:
    """Return a matrix whose entries ascend, none of them twice; ``x`` stays as it is."""
    compressed = x.tocsr() if x.format == "coo" else x
    if compressed.has_canonical_format:
        return compressed
    if compressed is x:
        compressed = x.copy()
    compressed.sum_duplicates()
    return compressed


def gpu_sparse_allreduce(
    comm: Caller, x: Any, call: SparseCall, refused: dict[str, Any], options: SparseOptions
) -> Any:
    """Add up the ranks' arrays; return a new one like ``x``, or with output="dense" all values."""
    what = "allreduce: x"
    refused = {
        **refused,
        **{name: value for name, value in options.items() if name != "output"},
        "algorithm": None if call.algorithm == "auto" else call.algorithm,
        "reproducible": call.reproducible,
        "async_op": call.async_op,
    }
    for name, value in refused.items():
        if value is not None and value is not False:
            raise UnsupportedError(f"allreduce: {name} is not there for sparse arrays on a GPU yet")
    output = options.get("output") or "auto"
    if output not in ("auto", "sparse", "dense"):
        raise InvalidArgumentError(
            f"allreduce: output is {output!r}: it is one of auto, sparse, dense"
        )
    if call.op not in ("sum", "avg"):
        raise UnsupportedError(
            f"allreduce: op {call.op!r} is not there for sparse arrays on a GPU yet: sum, avg are"
        )
    if comm._collected() is not None:
        raise UnsupportedError("allreduce: sparse arrays on a GPU are not there in group() yet")
    given = taken(x, what)
    return comm._alone(
        "sparse allreduce", lambda _: _run(comm, given, call, output == "dense"), False
    )


def request_of(
    indices: Any, values: Any, entries: int, length: int, dtype: int, index_bytes: int
) -> Any:
    """Return a coll_gpu_sparse."""
    request = ffi.new("coll_gpu_sparse *")
    request.size = ffi.sizeof("coll_gpu_sparse")
    request.indices, request.values = indices, values
    request.entries, request.length = entries, length
    request.dtype, request.index_bytes = dtype, index_bytes
    return request


def _run(comm: Caller, given: OnGpu, call: SparseCall, dense: bool) -> Any:
    places, values = given.indices, given.values
    device, stream, others = gpu_arrays.place_of("allreduce", values, places)
    follow(device, stream, others)
    on = ffi.cast("void *", stream)
    width = _INDICES[NAMES[places.dtype]]
    request = request_of(
        places.pointer, values.pointer, values.elements, given.length, values.dtype, width
    )
    request.op = op_code("allreduce", call.op)
    request.timeout = (
        0 if call.timeout is None else checked_seconds("allreduce: timeout", call.timeout)
    )
    agreed = ffi.new("char[]", given.agreed.encode())
    request.agreed = agreed
    out = gpu_arrays.fresh(values, (given.length,)) if dense else None
    if out is not None:
        request.output = out.pointer
    comm._handle.call("sparse allreduce", lib.coll_gpu_sparse_run, request, device, on)
    lead(device, stream, others)
    found = ffi.new("size_t *")
    comm._handle.call("sparse allreduce", lib.coll_gpu_sparse_entries, device, on, found)
    if out is not None:
        return given.back_dense(out.array)
    entries = int(found[0])
    to_places = gpu_arrays.fresh(places, (entries,))
    to_values = gpu_arrays.fresh(values, (entries,))
    comm._handle.call(
        "sparse allreduce", lib.coll_gpu_sparse_take, device, on, width, to_places.pointer,
        to_values.pointer,
    )  # fmt: skip
    return given.back(to_places.array, to_values.array)
