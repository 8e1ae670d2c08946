# SPDX-License-Identifier: Apache-2.0
"""The collectives that fold: allreduce, reduce_scatter(v), reduce, scan and exscan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import numpy as np

from collectives import arrays, quick, quick_parts
from collectives.arrays import Array, borrow
from collectives.caller import Caller, collective
from collectives.checks import (
    apart_target,
    checked_counts,
    checked_length,
    equal_part,
    in_elements,
    in_place_target,
    part_shapes,
    refuse_out_of_a_tree,
)
from collectives.dispatch import is_unusual, unusual_allreduce
from collectives.gpu_arrays import anywhere
from collectives.names import AUTOMATIC, KINDS, Accumulate, Reproducible, checked_root, how, op_code
from collectives.operations import USER_OPS, Op
from collectives.sparse.calls import (
    SparseCall,
    SparseOptions,
    refuse_sparse_options,
    sparse_call,
)
from collectives.sparse.conversion import is_sparse
from collectives.sparse.quick import first as sparse_first

_ALLREDUCE = KINDS["allreduce"]


class Reductions(Caller):
    """Results are folds of what the ranks hand in."""

    @quick.alike
    @sparse_first
    def allreduce(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: Op = "sum",
        accumulate: Accumulate | None = None,
        reproducible: Reproducible = False,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
        **sparse: Unpack[SparseOptions],
    ) -> Array:
        """Reduce ``x`` over all ranks, element by element; every rank gets the result.

        ``x`` and ``out`` have the same shape and dtype. All ranks pass the same number of elements
        and the same dtype; shapes may differ. Returns ``out``, else ``x`` itself, else (read-only
        ``x``) a new array. Of a list, tuple or dict of arrays (or of such) all are reduced, small
        ones in one message, and the same structure is returned; places of the arrays, with the
        keys that are words or numbers, are the same on all ranks, in the same order. They share no
        memory.

        ``op="avg"`` divides the sum by the number of ranks when it is complete: a sum beyond the
        range of the dtype is infinite, and so is its average. Which operations a dtype has, and
        how often an algorithm rounds a sum of narrow floats (float16, bfloat16, float8), is in
        docs/arithmetic.md.

        ``accumulate`` names a wider dtype in which partial results are kept until the result is
        complete, and rounded once, by any algorithm: "float32" or "float64" for narrow floats,
        "float64" for float32, "complex128" for complex64, as a name or a dtype. It is the same on
        all ranks, as is ``reproducible`` (see :class:`Communicator`). More bytes travel.

        Of a sparse array (:class:`Sparse`, SciPy's, torch's) the result is a new one, or a dense
        array where that takes fewer bytes; for its options see docs/sparse.md, for ``compress`` and
        ``op="adasum"`` docs/compression.md.
        """
        usual = algorithm is mode is accumulate is timeout is out is None
        usual = usual and reproducible is async_op is False and not sparse and op != "adasum"
        if usual and self._borrowed_allreduce(x, op):
            return x
        if is_unusual(x, op, sparse):
            no = {"accumulate": accumulate, "mode": mode}
            call = SparseCall(op, algorithm, timeout, async_op, reproducible=reproducible)
            return unusual_allreduce(self, x, out, call, no, sparse)
        if isinstance(x, list | tuple | dict):
            refuse_out_of_a_tree("allreduce", x, out)
            each = partial(
                self.allreduce, op=op, accumulate=accumulate, reproducible=reproducible,
                algorithm=algorithm, mode=mode, timeout=timeout,
            )  # fmt: skip
            return self._each("allreduce", x, each, async_op)
        options = how("allreduce", algorithm, mode, timeout, accumulate, reproducible)
        source, code = anywhere(x, "allreduce: x"), op_code("allreduce", op)
        target = in_place_target("allreduce", source, out)
        return self._begin(
            "allreduce", "allreduce", source, target, options, op=code, async_op=async_op
        )

    def _borrowed_allreduce(self, x: Array, op: Op) -> bool:
        """Reduce a tensor, or an array that NumPy's buffer protocol hides, in place, if it can."""
        code = op_code("allreduce", op)
        if self._deferred is not None or self._deferred_in_job is not None or code >= USER_OPS:
            return False
        if (borrowed := borrow(x)) is None:
            return False
        pointer, count, dtype = borrowed
        self._call(
            "allreduce", collective, _ALLREDUCE, pointer, pointer, count, dtype, code, 0,
            *AUTOMATIC[:3],
        )  # fmt: skip
        if type(x) is not np.ndarray:
            arrays.written(x)
        return True

    @quick.reduce_scatter
    def reduce_scatter(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: Op = "sum",
        accumulate: Accumulate | None = None,
        reproducible: Reproducible = False,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
        **sparse: Unpack[SparseOptions],
    ) -> Array:
        """Reduce ``x`` over all ranks; rank r gets the r-th of ``size`` equal parts.

        The first axis is split: ``x`` of shape (size*k, ...), of the same number of elements and
        dtype on all ranks, gives (k, ...), in ``out`` or in a new array; ``x`` of shape
        (size, ...) may also go to an ``out`` of shape (...). A first axis that does not split into
        equal parts is refused: see reduce_scatterv. ``out`` may be rank r's own part of ``x``; then
        the rest of ``x`` is lost.

        Of a sparse array the rows are split, so there is no csc; all else is as in allreduce.
        """
        if is_sparse(x):
            no = {"out": out, "accumulate": accumulate, "mode": mode}
            call = SparseCall(op, algorithm, timeout, async_op, reproducible=reproducible)
            return sparse_call(self, "reduce_scatter", x, call, no, sparse)
        refuse_sparse_options("reduce_scatter", sparse)
        code = op_code("reduce_scatter", op)
        options = how("reduce_scatter", algorithm, mode, timeout, accumulate, reproducible)
        source = anywhere(x, "reduce_scatter: x")
        part = equal_part("reduce_scatter", source, self.size, "reduce_scatterv")
        target = apart_target("reduce_scatter", source, out, part_shapes(part))
        return self._begin(
            "reduce_scatter", "reduce_scatter", source, target, options, op=code, async_op=async_op
        )

    @quick_parts.reduce_scatterv
    def reduce_scatterv(
        self,
        x: Array,
        counts: Sequence[int],
        out: Array | None = None,
        *,
        op: Op = "sum",
        accumulate: Accumulate | None = None,
        reproducible: Reproducible = False,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Reduce ``x`` over all ranks; rank r gets a part of length ``counts[r]``.

        The first axis is split: ``x`` of shape (sum(counts), ...) gives (counts[rank], ...), in
        ``out`` or in a new array. All ranks pass the same counts, one length per rank, 0 allowed.
        ``out`` may be rank r's own part of ``x``; then the rest of ``x`` is lost.
        """
        code = op_code("reduce_scatterv", op)
        options = how("reduce_scatter", algorithm, mode, timeout, accumulate, reproducible)
        source = anywhere(x, "reduce_scatterv: x")
        lengths = checked_counts("reduce_scatterv: counts", counts, self.size)
        checked_length("reduce_scatterv", source, sum(lengths), "the sum of counts")
        elements = in_elements("reduce_scatterv", lengths, source)
        shape = (lengths[self.rank], *source.shape[1:])
        target = apart_target("reduce_scatterv", source, out, [shape])
        return self._begin(
            "reduce_scatterv",
            "reduce_scatter",
            source,
            target,
            options,
            op=code,
            counts=elements,
            async_op=async_op,
        )

    @quick.reduce
    def reduce(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: Op = "sum",
        accumulate: Accumulate | None = None,
        reproducible: Reproducible = False,
        root: int = 0,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array | None:
        """Reduce ``x`` over all ranks; rank ``root`` gets the result, as allreduce gives it.

        The other ranks get None: their ``x`` and ``out`` are left as they were.
        """
        code = op_code("reduce", op)
        options = how("reduce", algorithm, mode, timeout, accumulate, reproducible)
        source = anywhere(x, "reduce: x")
        place = checked_root("reduce", root, self.size)
        target = in_place_target("reduce", source, out) if self.rank == place else None
        return self._begin(
            "reduce", "reduce", source, target, options, op=code, root=place, async_op=async_op
        )

    @quick.alike
    def scan(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: Op = "sum",
        accumulate: Accumulate | None = None,
        reproducible: Reproducible = False,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Reduce over the ranks up to this one: rank r gets the fold of ranks 0 ... r.

        ``x`` and ``out`` have the same shape and dtype. All ranks pass the same number of elements
        and the same dtype; shapes may differ. Returns ``out``, else ``x`` itself, else (read-only
        ``x``) a new array. There is no ``op="avg"``, since every rank has
        another number of operands.
        """
        code = op_code("scan", op)
        options = how("scan", algorithm, mode, timeout, accumulate, reproducible)
        source = anywhere(x, "scan: x")
        target = in_place_target("scan", source, out)
        return self._begin("scan", "scan", source, target, options, op=code, async_op=async_op)

    @quick.alike
    def exscan(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: Op = "sum",
        accumulate: Accumulate | None = None,
        reproducible: Reproducible = False,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Reduce over the ranks before this one: rank r gets the fold of ranks 0 ... r-1.

        As scan, but for rank 0, before which there is none: what it gets back is as it was, be it
        ``out`` or ``x`` (of a read-only ``x`` a copy).
        """
        code = op_code("exscan", op)
        options = how("exscan", algorithm, mode, timeout, accumulate, reproducible)
        source = anywhere(x, "exscan: x")
        target = in_place_target("exscan", source, out)
        if self.rank == 0 and out is None and not source.writable:
            target.array[...] = source.array  # a new array is not initialised
        return self._begin("exscan", "exscan", source, target, options, op=code, async_op=async_op)
