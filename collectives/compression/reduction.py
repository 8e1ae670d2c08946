# SPDX-License-Identifier: Apache-2.0
"""Allreduces of dense arrays that are compressed on their way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from collectives import arrays
from collectives.arrays import NAMES, Array, Operand
from collectives.checks import in_place_target
from collectives.compression.codec import Compressor, dense_vector
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.gpu_arrays import anywhere
from collectives.names import checked_seconds

if TYPE_CHECKING:
    from collectives.reductions import Reductions

_FLOATS = ("float32", "float64", "float16", "bfloat16")


def compressed_allreduce(
    comm: Reductions,
    x: Array,
    out: Array | None,
    op: Any,
    timeout: float | None,
    compress: Compressor,
    *,
    async_op: bool,
) -> Array:
    """Reduce ``x`` by a compressor; as an allreduce, the result goes to ``out`` or to ``x``."""
    if op not in ("sum", "avg"):
        raise InvalidArgumentError(f"allreduce: op {op!r} is not there with compress: sum, avg are")
    seconds = None if timeout is None else checked_seconds("allreduce: timeout", timeout)
    source = anywhere(x, "allreduce: x")
    if NAMES[source.dtype] not in _FLOATS:
        raise InvalidArgumentError(
            f"allreduce: x is {NAMES[source.dtype]}: compress is there for {', '.join(_FLOATS)}"
        )
    target = in_place_target("allreduce", source, out)
    if source.device >= 0:
        return _on_gpu(comm, compress, source, target, op, seconds, async_op=async_op)
    vector, into = dense_vector(source, "allreduce: x"), dense_vector(target, "allreduce: out")
    later = async_op or not comm._plain

    def run(_: str) -> Array:
        if later:  # calls before this one may have written to what is strided
            arrays.repack(source)
        with _told_if_interrupted(comm):
            np.copyto(into, compress.reduce(comm, vector, op, seconds))
        return arrays.delivered(target)

    # In its turn: it reads x, and what the compressor keeps, when calls before it are done.
    return comm._alone("allreduce", run, async_op)


@contextmanager
def _told_if_interrupted(comm: Reductions) -> Iterator[None]:
    """Tell the others where Ctrl-C ends what this rank computes between calls, as within them."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        comm._handle.interrupted("allreduce", error)
        raise


def _on_gpu(
    comm: Reductions,
    compress: Compressor,
    source: Operand,
    target: Operand,
    op: str,
    seconds: float | None,
    *,
    async_op: bool,
) -> Array:
    from collectives.compression.topk import TopK  # both for those who use it
    from collectives.compression.topk_gpu import top_k_allreduce

    if not isinstance(compress, TopK):
        raise UnsupportedError("allreduce: of what compresses, arrays on a GPU have cl.TopK so far")
    topk = compress

    def run(_: str) -> Array:
        with _told_if_interrupted(comm):
            top_k_allreduce(topk, comm, source, target, op, seconds)
        return arrays.delivered(target)

    return comm._alone("allreduce", run, async_op)
