# SPDX-License-Identifier: Apache-2.0
"""The collectives that move parts of equal length, and the barrier."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from collectives import quick
from collectives.arrays import Array
from collectives.caller import NOTHING, collective
from collectives.checks import (
    apart_target,
    equal_part,
    in_place_target,
    joined_shapes,
    part_shapes,
    received,
)
from collectives.gpu_arrays import anywhere
from collectives.names import AUTOMATIC, KINDS, checked_root, how
from collectives.parts import Parts
from collectives.sparse.calls import (
    SparseCall,
    SparseOptions,
    refuse_sparse_options,
    sparse_call,
)
from collectives.sparse.conversion import is_sparse

_BARRIER = KINDS["barrier"]


class Movements(Parts):
    """Results are what other ranks handed in, unchanged."""

    @quick.allgather
    def allgather(
        self,
        x: Array,
        out: Array | None = None,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
        **sparse: Unpack[SparseOptions],
    ) -> Array:
        """Give every rank the ``x`` of all ranks, joined along the first axis in rank order.

        ``x`` of shape (k, ...) gives (size*k, ...), in ``out`` or in a new array; on all ranks it
        has the same number of elements and dtype, while shapes may differ, as results then do.
        ``out`` may also be (size, k, ...). A number (shape ()) gives (size,). ``x`` may be rank
        r's own part of ``out``.

        Sparse arrays, of one length or shape, are joined along the first axis, too, so there is no
        csc; all else is as in allreduce.
        """
        if is_sparse(x):
            call = SparseCall(algorithm=algorithm, timeout=timeout, async_op=async_op)
            return sparse_call(self, "allgather", x, call, {"out": out, "mode": mode}, sparse)
        refuse_sparse_options("allgather", sparse)
        options = how("allgather", algorithm, mode, timeout)
        source = anywhere(x, "allgather: x")
        target = apart_target("allgather", source, out, joined_shapes(source, self.size))
        return self._begin("allgather", "allgather", source, target, options, async_op=async_op)

    @quick.gather
    def gather(
        self,
        x: Array,
        out: Array | None = None,
        *,
        root: int = 0,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array | None:
        """Give rank ``root`` the ``x`` of all ranks, joined along the first axis in rank order.

        There it is as allgather. The other ranks get None: their ``out`` is left as it was.
        """
        options = how("gather", algorithm, mode, timeout)
        source = anywhere(x, "gather: x")
        place = checked_root("gather", root, self.size)
        target = None
        if self.rank == place:
            target = apart_target("gather", source, out, joined_shapes(source, self.size))
        return self._begin(
            "gather", "gather", source, target, options, root=place, async_op=async_op
        )

    @quick.scatter
    def scatter(
        self,
        x: Array | None,
        out: Array | None = None,
        *,
        root: int = 0,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Give rank r the r-th of ``size`` equal parts of rank ``root``'s ``x``.

        On the root, ``x`` of shape (size*k, ...) gives (k, ...), in ``out`` or in a new array;
        ``x`` of shape (size, ...) may also go to an ``out`` of shape (...). ``out`` may be the
        root's own part of ``x``.

        The other ranks say what shape and dtype their part has, (k, ...) as on the root. They
        pass ``x=None`` and an ``out``, which is returned; or no ``out``, and as ``x`` an array
        like the part, which is overwritten and returned, or, where it is read-only, gives a new
        array. With an ``out`` their ``x`` is not looked at.
        """
        options = how("scatter", algorithm, mode, timeout)
        place = checked_root("scatter", root, self.size)
        if self.rank == place:
            source = anywhere(x, "scatter: x")
            part = equal_part("scatter", source, self.size, "scatterv")
            target = apart_target("scatter", source, out, part_shapes(part))
        else:
            source = None
            target = received("scatter", x, out, self.rank, place)
        return self._begin(
            "scatter",
            "scatter",
            source,
            target,
            options,
            root=place,
            count=target.elements,
            async_op=async_op,
        )

    @quick.alltoall
    def alltoall(
        self,
        x: Array,
        out: Array | None = None,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Exchange equal parts: rank r gets the r-th part of every rank's ``x``, in rank order.

        ``x`` of shape (size*k, ...), of the same number of elements and dtype on all ranks, is
        split along its first axis; the result has the same shape. Returns ``out``, else ``x``
        itself, overwritten, else (read-only ``x``) a new array. A first axis that does not split
        into equal parts is refused: see alltoallv.
        """
        options = how("alltoall", algorithm, mode, timeout)
        source = anywhere(x, "alltoall: x")
        equal_part("alltoall", source, self.size, "alltoallv")
        target = in_place_target("alltoall", source, out)
        return self._begin("alltoall", "alltoall", source, target, options, async_op=async_op)

    @quick.broadcast
    def broadcast(
        self,
        x: Array,
        root: int = 0,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
        **sparse: Unpack[SparseOptions],
    ) -> Array:
        """Give every rank the ``x`` of rank ``root``.

        ``x`` has the same number of elements and dtype on all ranks; shapes may differ. A writable
        ``x`` is overwritten (the root's keeps its values) and returned; a read-only one gives a
        new array. Lists, tuples and dicts of arrays, alike on all ranks as in allreduce, are given
        as a whole, and returned so.

        Of a sparse array all get a new one; the other ranks pass one of the same length or shape,
        format and dtype, whose elements are not looked at, as one without any.
        """
        if is_sparse(x):
            place = checked_root("broadcast", root, self.size)
            call = SparseCall("sum", algorithm, timeout, async_op, place)
            return sparse_call(self, "broadcast", x, call, {"mode": mode}, sparse)
        refuse_sparse_options("broadcast", sparse)
        if isinstance(x, list | tuple | dict):
            each = partial(
                self.broadcast,
                root=root,
                algorithm=algorithm,
                mode=mode,
                timeout=timeout,
            )
            return self._each("broadcast", x, each, async_op)
        options = how("broadcast", algorithm, mode, timeout)
        source = anywhere(x, "broadcast: x")
        place = checked_root("broadcast", root, self.size)
        target = in_place_target("broadcast", source, None)
        return self._begin(
            "broadcast", "broadcast", source, target, options, root=place, async_op=async_op
        )

    @quick.barrier
    def barrier(
        self,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Return when every rank has called it. There is no result: None."""
        if async_op or algorithm is not None or mode is not None or timeout is not None:
            options = how("barrier", algorithm, mode, timeout)
            return self._begin("barrier", "barrier", None, None, options, async_op=async_op)
        self._call("barrier", collective, _BARRIER, NOTHING, NOTHING, 0, 0, 0, 0, *AUTOMATIC[:3])
        return None
