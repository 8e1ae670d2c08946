# SPDX-License-Identifier: Apache-2.0
"""Which allreduce a call is that is not the usual one: of a sparse array, compressed, Adasum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collectives.adasum import adasum
from collectives.arrays import Array
from collectives.compression.reduction import compressed_allreduce
from collectives.errors import InvalidArgumentError
from collectives.sparse.calls import (
    SparseCall,
    SparseOptions,
    check_names,
    refuse_sparse_options,
    sparse_call,
)
from collectives.sparse.compression import QSGD
from collectives.sparse.conversion import is_sparse
from collectives.sparse.on_gpu import gpu_sparse_allreduce, is_on_gpu

if TYPE_CHECKING:
    from collectives.reductions import Reductions


def is_unusual(x: Array, op: Any, options: SparseOptions) -> bool:
    """Whether :func:`unusual_allreduce` is to make the call."""
    if options:
        check_names("allreduce", options)
    given = any(value is not None for value in options.values())
    return given or (isinstance(op, str) and op == "adasum") or is_sparse(x)


def _check_fits(x: Array, op: Any, options: SparseOptions) -> None:
    """Refuse what the kind of array does not have."""
    compress, sparse = options.get("compress"), is_sparse(x)
    usual = isinstance(compress, QSGD) or callable(getattr(compress, "reduce", None))
    if compress is not None and (not usual or isinstance(compress, type)):
        raise InvalidArgumentError(
            f"allreduce: compress is {compress!r:.60}: pass cl.QSGD(bits) for sparse arrays, "
            "cl.TopK(share), cl.FP8() or a cl.codec for dense ones"
        )
    if sparse and isinstance(op, str) and op == "adasum":
        raise InvalidArgumentError('allreduce: op="adasum" is not there for sparse arrays')
    if isinstance(x, list | tuple | dict) and not sparse:
        named = next((name for name, value in options.items() if value is not None), 'op="adasum"')
        raise InvalidArgumentError(f"allreduce: {named} is not there for a structure of arrays")
    if isinstance(compress, QSGD) and not sparse:
        raise InvalidArgumentError(
            "allreduce: cl.QSGD is there for sparse arrays only: pass cl.TopK(share), cl.FP8() or "
            "a cl.codec for dense ones"
        )


def unusual_allreduce(
    comm: Reductions,
    x: Array,
    out: Array | None,
    call: SparseCall,
    refused: dict[str, Any],
    options: SparseOptions,
) -> Array:
    """Make the call. ``refused``: options that are there for usual ones only."""
    _check_fits(x, call.op, options)
    compress = options.get("compress")
    if is_sparse(x) and is_on_gpu(x):
        return gpu_sparse_allreduce(comm, x, call, {"out": out, **refused}, options)
    if is_sparse(x):
        return sparse_call(comm, "allreduce", x, call, {"out": out, **refused}, options)
    refused = {**refused, "algorithm": call.algorithm, "reproducible": call.reproducible}
    others: Any = {name: value for name, value in options.items() if name != "compress"}
    if call.op == "adasum":
        refuse_sparse_options("allreduce", others)
        refused["compress"] = compress
        return adasum(comm, x, out, call.timeout, refused, async_op=call.async_op)
    if compress is None or isinstance(compress, QSGD):
        refuse_sparse_options("allreduce", options)
        raise AssertionError  # there is one, or the call would be a usual one
    refuse_sparse_options("allreduce", others)
    for name, value in refused.items():
        if value is not None and value is not False:
            raise InvalidArgumentError(f"allreduce: {name} is not there with compress")
    if comm._collected() is not None:
        raise InvalidArgumentError("allreduce: compress is not there in group(): call it outside")
    return compressed_allreduce(
        comm, x, out, call.op, call.timeout, compress, async_op=call.async_op
    )
