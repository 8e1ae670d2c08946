# SPDX-License-Identifier: Apache-2.0
"""TopK of arrays in the memory of a GPU: what was not sent stays there, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectives._ffi import check, ffi, lib
from collectives.arrays import DTYPES, NAMES, Operand
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.gpu_memory import allocated
from collectives.names import op_code
from collectives.sparse.on_gpu import MOST, request_of

if TYPE_CHECKING:
    from collectives.compression.topk import TopK
    from collectives.reductions import Reductions

_INDEX_BYTES = 4


class GpuKept:
    """The residual of one array on a GPU, and the memory that a selection needs."""

    def __init__(self, like: Operand, wanted: int) -> None:
        """Take the memory; the residual is zero."""
        self.of = (like.elements, like.dtype, like.device)
        wide = 8 if like.dtype == DTYPES["float64"] else 4
        self._memory = [allocated(like.device, like.elements * wide)]
        selection = ffi.new("coll_gpu_selection *")
        selection.size = ffi.sizeof("coll_gpu_selection")
        selection.dtype, selection.index_bytes = like.dtype, _INDEX_BYTES
        selection.n, selection.k = like.elements, wanted
        selection.residual = self._memory[0]
        room = ffi.new("size_t *")
        check(lib.coll_gpu_top_k_room(like.device, selection, room))
        for name, size in (("room", room[0]), ("indices", wanted * 4), ("values", wanted * wide)):
            self._memory.append(allocated(like.device, int(size)))
            setattr(selection, name, self._memory[-1])
        self.selection = selection
        self.wanted = wanted


def top_k_allreduce(
    topk: TopK,
    comm: Reductions,
    source: Operand,
    target: Operand,
    op: str,
    seconds: float | None,
) -> None:
    """Add up the largest elements of all ranks into ``target``; enqueued when it returns.

    Nothing is selected before all ranks have agreed on the call.
    """
    if target.elements == 0:
        raise InvalidArgumentError("allreduce: compress of an array of no elements on a GPU")
    kept = _kept(topk, source)
    kept.selection.x = source.pointer
    request = request_of(
        kept.selection.indices, kept.selection.values, kept.wanted, source.elements, source.dtype,
        _INDEX_BYTES,
    )  # fmt: skip
    request.op, request.output = op_code("allreduce", op), target.pointer
    request.timeout, request.selection = seconds or 0, kept.selection
    stream = ffi.cast("void *", source.stream)
    comm._handle.call("allreduce", lib.coll_gpu_sparse_run, request, source.device, stream)


def _kept(topk: TopK, source: Operand) -> GpuKept:
    options = {"feedback=False": not topk.feedback, "reuse": topk.reuse > 1}
    options.update({"momentum": topk.momentum > 0, "of_sum": topk.of_sum})
    given = [name for name, is_given in options.items() if is_given]
    if given:
        raise UnsupportedError(f"TopK: {given[0]} is not there for arrays on a GPU yet")
    if topk.residual is not None:
        raise UnsupportedError("TopK: what is kept is in memory of the host, and x is on a GPU")
    if source.elements > MOST:
        raise UnsupportedError("TopK: x has more than 2^31 elements, which a GPU does not take yet")
    of = (source.elements, source.dtype, source.device)
    if topk._on_gpu is None:
        topk._on_gpu = GpuKept(source, topk._wanted(source.elements))
    if topk._on_gpu.of != of:
        elements, dtype, device = topk._on_gpu.of
        raise InvalidArgumentError(
            f"TopK: the residual is of {elements} {NAMES[dtype]} on GPU {device}, x is of "
            f"{source.elements} {NAMES[source.dtype]} on GPU {source.device}: use one TopK for "
            "each array"
        )
    return topk._on_gpu
