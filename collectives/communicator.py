# SPDX-License-Identifier: Apache-2.0
"""A communicator: a fixed group of ranks, and the collectives among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

import numpy as np

from collectives import arrays
from collectives._ffi import ffi, lib
from collectives.arrays import Array, Operand, borrow, operand
from collectives.checks import (
    apart_target,
    checked_counts,
    checked_root,
    in_place_target,
)
from collectives.errors import CollectiveError, InvalidArgumentError
from collectives.handle import Handle
from collectives.names import AUTOMATIC, KINDS, OPS, Options, how, op_code

_ALLREDUCE = KINDS["allreduce"]
_BARRIER = KINDS["barrier"]
_SUM = OPS["sum"]
_NOTHING = ffi.NULL
_collective = lib.coll_collective


class Communicator:
    """A fixed group of ranks; made by :func:`collectives.init` and :func:`collectives.local`.

    All ranks make the same calls in the same order. Arrays are NumPy arrays, torch tensors in CPU
    memory, or objects with DLPack or the buffer protocol, of dtype float32, float64, int32, int64,
    uint8 or bfloat16. A writable array is changed in place and returned; a read-only one gives a
    new result. ``op`` is "sum", "prod", "min", "max" or (floating point) "avg";
    :meth:`allreduce` tells how sums are rounded and where they overflow.

    Options of every collective, None leaves them to the library: ``algorithm``, a name from
    :func:`collectives.algorithms`; ``mode``, where messages lie ("staged", "inline"; among
    threads also "pull", "push"); ``timeout``, seconds for the whole call. The first two must be
    the same on all ranks.

    Every call ends: with the right result, or with a :class:`CollectiveError`. Arguments are
    checked before anything is sent, so InvalidArgumentError and UnsupportedError leave the
    communicator as it was. Other errors end it on all ranks.

    One thread at a time. With ``with`` it is closed at the end of the block, and aborted for all
    ranks when the block raises.
    """

    def __init__(self, handle: Handle) -> None:
        """Take over a handle. Users call init() or local()."""
        self._handle = handle
        self._call = handle.call

    @property
    def rank(self) -> int:
        """Place of this rank, 0 ... size-1."""
        return self._handle.rank

    @property
    def size(self) -> int:
        """How many ranks take part: p of the literature."""
        return self._handle.size

    @property
    def closed(self) -> bool:
        """Whether this rank has closed it."""
        return not self._handle.open

    @property
    def sequence(self) -> int:
        """How many collectives this communicator has begun."""
        return self._handle.sequence

    def __repr__(self) -> str:
        """Tell rank, size and state."""
        state = ", closed" if self.closed else ""
        return f"<Communicator rank {self.rank} of {self.size}{state}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: two owners of one rank would end each other."""
        raise TypeError(
            "a Communicator cannot be pickled or copied: it is this process's own place in its "
            "group; each process makes its own with collectives.init(), "
            "each thread gets one from collectives.local()"
        )

    def close(self) -> None:
        """Leave. Local: never waits for peers; a second call does nothing.

        Raises MismatchError where an earlier one-way call (broadcast, reduce) turns out not to
        have been the same on all ranks.
        """
        self._handle.close()

    def abort(self, reason: str) -> None:
        """End the present and later calls of all ranks with AbortedError, which tells the reason.

        May be called from any thread. Raises ClosedError after close().
        """
        self._handle.abort(str(reason))

    def __enter__(self) -> Communicator:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; tell the other ranks first when the block raised."""
        if error is None:
            self.close()
            return
        try:
            if not self.closed:
                self.abort(f"it raised {type(error).__name__}: {error}")
            self.close()
        except CollectiveError:
            pass  # the error of the block is the cause, and is on its way

    def __del__(self) -> None:
        """Close silently."""
        try:
            self._handle.close()
        except Exception:
            return  # nobody is there to be told; at interpreter exit even names may be gone

    def allreduce(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: str = "sum",
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
    ) -> Array:
        """Reduce ``x`` over all ranks, element by element; every rank gets the result.

        ``x`` and ``out`` have the same shape and dtype, on all ranks. Returns ``out``, else ``x``
        itself, else (read-only ``x``) a new array.

        ``op="avg"`` divides the sum by the number of ranks when it is complete: a sum beyond the
        range of the dtype is infinite, and so is its average. Sums of bfloat16 are made in
        float32 and rounded once by the direct algorithms; in all others (ring, circulant,
        recursive doubling and halving, and the binomial reduce) partial sums travel, and are
        rounded to bfloat16 on every hop.
        """
        code = _SUM if op == "sum" else op_code("allreduce", op)
        plain = out is None and algorithm is None and mode is None and timeout is None
        if plain and (borrowed := borrow(x)) is not None:
            # The short way: nothing that the call of a plain array does not need. The last three
            # arguments are those of AUTOMATIC.
            pointer, count, dtype = borrowed
            self._call(
                "allreduce", _collective, _ALLREDUCE, pointer, pointer, count, dtype, code, 0,
                -1, -1, 0.0,
            )  # fmt: skip
            if type(x) is not np.ndarray:
                arrays.written(x)
            return x
        options = how("allreduce", algorithm, mode, timeout)
        source = operand(x, "allreduce: x")
        target = in_place_target("allreduce", source, out)
        return self._start("allreduce", source, target, code, 0, options)

    def reduce_scatter(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: str = "sum",
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
    ) -> Array:
        """Reduce ``x`` over all ranks; rank r gets the r-th of ``size`` equal parts.

        The first axis is split: ``x`` of shape (size*k, ...) gives (k, ...), in ``out`` or in a
        new array; ``x`` of shape (size, ...) may also go to an ``out`` of shape (...). A first
        axis that does not split into equal parts is refused. ``out`` may be rank r's own part of
        ``x``; then the rest of ``x`` is lost.
        """
        code = op_code("reduce_scatter", op)
        options = how("reduce_scatter", algorithm, mode, timeout)
        source = operand(x, "reduce_scatter: x")
        rows = source.shape[0] if source.shape else 1
        if not source.shape or rows % self.size:
            raise InvalidArgumentError(
                f"reduce_scatter: x of shape {source.shape} does not split into {self.size} equal "
                "parts along its first axis: pad it; the form for unequal parts "
                "(reduce_scatterv) is not in this release"
            )
        shapes = [(rows // self.size, *source.shape[1:])]
        if rows == self.size:
            shapes.append(source.shape[1:])
        target = apart_target("reduce_scatter", source, out, shapes)
        return self._start("reduce_scatter", source, target, code, 0, options)

    def allgather(
        self,
        x: Array,
        out: Array | None = None,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
    ) -> Array:
        """Give every rank the ``x`` of all ranks, joined along the first axis in rank order.

        ``x`` of shape (k, ...), the same on all ranks, gives (size*k, ...), in ``out`` or in a
        new array; ``out`` may also be (size, k, ...). A number (shape ()) gives (size,). ``x`` may
        be rank r's own part of ``out``.
        """
        options = how("allgather", algorithm, mode, timeout)
        source = operand(x, "allgather: x")
        shapes = [(self.size, *source.shape)]
        if source.shape:
            shapes.insert(0, (self.size * source.shape[0], *source.shape[1:]))
        target = apart_target("allgather", source, out, shapes)
        return self._start("allgather", source, target, 0, 0, options)

    def allgatherv(
        self,
        x: Array,
        counts: Sequence[int],
        out: Array | None = None,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
    ) -> Array:
        """Join parts of unequal length along the first axis, in rank order, on every rank.

        ``counts[r]`` is the length of rank r's ``x`` along its first axis; all ranks pass the
        same counts. ``x`` of shape (counts[rank], ...) gives (sum(counts), ...), in ``out`` or in
        a new array.
        """
        options = how("allgather", algorithm, mode, timeout)
        source = operand(x, "allgatherv: x")
        lengths = checked_counts(counts, self.size)
        if not source.shape or source.shape[0] != lengths[self.rank]:
            raise InvalidArgumentError(
                f"allgatherv: x of rank {self.rank} has shape {source.shape}, "
                f"but counts[{self.rank}] is {lengths[self.rank]}"
            )
        row = math.prod(source.shape[1:])
        shape = (sum(lengths), *source.shape[1:])
        target = apart_target("allgatherv", source, out, [shape])
        elements = ffi.new("size_t[]", [n * row for n in lengths])
        request = ffi.new("coll_call *")
        request.size = ffi.sizeof("coll_call")
        request.kind, request.dtype = KINDS["allgather"], source.dtype
        request.input, request.output = source.pointer, target.pointer
        request.count, request.counts = source.elements, elements
        request.algorithm, request.mode, request.timeout = options
        self._call("allgatherv", lib.coll_run, request)
        return arrays.delivered(target)

    def broadcast(
        self,
        x: Array,
        root: int = 0,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
    ) -> Array:
        """Give every rank the ``x`` of rank ``root``.

        ``x`` has the same shape and dtype on all ranks. A writable ``x`` is overwritten (the
        root's keeps its values) and returned; a read-only one gives a new array.
        """
        options = how("broadcast", algorithm, mode, timeout)
        source = operand(x, "broadcast: x")
        place = checked_root("broadcast", root, self.size)
        target = in_place_target("broadcast", source, None)
        return self._start("broadcast", source, target, 0, place, options)

    def reduce(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: str = "sum",
        root: int = 0,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
    ) -> Array | None:
        """Reduce ``x`` over all ranks; rank ``root`` gets the result, as allreduce gives it.

        The other ranks get None: their ``x`` and ``out`` are left as they were.
        """
        code = op_code("reduce", op)
        options = how("reduce", algorithm, mode, timeout)
        source = operand(x, "reduce: x")
        place = checked_root("reduce", root, self.size)
        if self.rank == place:
            target = in_place_target("reduce", source, out)
            return self._start("reduce", source, target, code, place, options)
        self._start("reduce", source, None, code, place, options)
        return None

    def barrier(
        self,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Return when every rank has called it."""
        options = AUTOMATIC
        if algorithm is not None or mode is not None or timeout is not None:
            options = how("barrier", algorithm, mode, timeout)
        self._call("barrier", _collective, _BARRIER, _NOTHING, _NOTHING, 0, 0, 0, 0, *options)

    def _start(
        self,
        call: str,
        source: Operand,
        target: Operand | None,
        op: int,
        root: int,
        options: Options,
    ) -> Array:
        output = _NOTHING if target is None else target.pointer
        self._call(
            call, _collective, KINDS[call], source.pointer, output, source.elements, source.dtype,
            op, root, *options,
        )  # fmt: skip
        return None if target is None else arrays.delivered(target)
