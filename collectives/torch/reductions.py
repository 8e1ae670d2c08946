# SPDX-License-Identifier: Apache-2.0
"""Collectives of a torch group that fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed import ReduceOp

from collectives.torch import at_once
from collectives.torch.options import operation, root_of
from collectives.torch.tensors import (
    apart,
    check_parts,
    dense,
    in_place,
    landed,
    landing,
    one,
    pieces,
    plain,
    tensors_of,
)
from collectives.torch.wording import Words, check_size, worded
from collectives.torch.work import Work

if TYPE_CHECKING:
    from collectives.communicator import Communicator


_LIST = Words("reduce_scatter", "output", "input_list", send_counts="the sizes of input_list")
_SINGLE = Words("reduce_scatter_tensor", "output", "input")


class Reductions:
    """allreduce, reduce, reduce_scatter and their variants."""

    communicator: Communicator
    _start: Callable[..., Work]
    _limit: dict[str, Any]
    _limits: Callable[..., dict[str, Any]]

    def allreduce(
        self,
        tensors: Sequence[torch.Tensor] | torch.Tensor,
        opts: Any = None,
        op: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Reduce a tensor in place, on all ranks. One that is sparse is exchanged as such."""
        if op is timeout is None and not self._limit:
            done = at_once.reduced(self.communicator, tensors, opts)
            if done is not None:
                return Work(done)
        opts, op = _op(opts, op)
        x, code, limits = one(tensors), operation(op), self._limits(opts, timeout)
        comm = self.communicator
        if x.layout != torch.strided:
            if x.layout != torch.sparse_coo:
                dense("all_reduce", [x])

            def sparse() -> None:
                total = comm.allreduce(x, op=code, **limits, output="sparse")
                _into_sparse(*_as_given(x, total))

            return self._start("all_reduce", sparse, [x], opts)

        def job() -> None:
            in_place(lambda y: comm.allreduce(y, op=code, **limits), x)

        return self._start("all_reduce", job, [x], opts)

    def allreduce_coalesced(
        self,
        tensors: Sequence[torch.Tensor],
        opts: Any = None,
        op: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Reduce several tensors, small ones in one message."""
        opts, op = _op(opts, op)
        code, limits, comm = operation(op), self._limits(opts, timeout), self.communicator
        xs = [plain(x) for x in tensors]
        # Of several tensors a communicator makes one group.
        return self._start(
            "all_reduce_coalesced", lambda: comm.allreduce(xs, op=code, **limits), xs, opts
        )

    def reduce(
        self,
        tensors: Sequence[torch.Tensor] | torch.Tensor,
        opts: Any = None,
        root: int | None = None,
        op: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Reduce a tensor into that of the root."""
        opts, to = root_of(opts, root)
        opts, op = _op(opts, op)
        x, code, limits, comm = (
            one(tensors),
            operation(op),
            self._limits(opts, timeout),
            self.communicator,
        )
        if comm.rank != to:
            x = apart(x)

        def job() -> None:
            in_place(lambda y: comm.reduce(y, root=to, op=code, **limits), x)

        return self._start("reduce", job, [x], opts)

    def reduce_scatter(
        self,
        outputs: Sequence[torch.Tensor] | torch.Tensor,
        inputs: Sequence[Any],
        opts: Any = None,
        op: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Reduce lists of a tensor for each rank; parts may differ in size."""
        opts, op = _op(opts, op)
        out, parts = one(outputs), tensors_of(inputs)
        code, limits, comm = operation(op), self._limits(opts, timeout), self.communicator

        def job() -> None:
            check_parts("reduce_scatter", parts, comm.size)
            whole, sizes = pieces(parts, out)
            own, room = comm.rank, landing(out)
            check_size(_LIST.call, f"{_LIST.x}[{own}]", sizes[own], _LIST.out, out.numel())
            if len(set(sizes)) == 1:
                worded(_LIST, comm.reduce_scatter, whole, room, op=code, **limits)
            else:
                worded(_LIST, comm.reduce_scatterv, whole, sizes, room, op=code, **limits)
            landed(room, out)

        return self._start("reduce_scatter", job, [out], opts, parts)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        """Reduce a tensor that has a part for each rank."""
        opts, op = _op(opts, None)
        code, limits, comm = operation(op), self._limits(opts), self.communicator
        return self._start(
            "reduce_scatter",
            lambda: _scatter_sum(comm, plain(input), plain(output), code, limits),
            [output],
            opts,
            [input],
        )

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Work:
        """Reduce several tensors that have a part for each rank."""
        opts, op = _op(opts, None)
        code, limits, comm = operation(op), self._limits(opts), self.communicator
        pairs = list(zip(map(plain, inputs), map(plain, outputs), strict=True))

        def job() -> None:
            for x, out in pairs:
                _scatter_sum(comm, x, out, code, limits)

        return self._start("reduce_scatter_coalesced", job, list(outputs), opts, inputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced


def _scatter_sum(
    comm: Communicator, x: torch.Tensor, out: torch.Tensor, code: str, limits: dict[str, Any]
) -> None:
    room = landing(out)
    worded(_SINGLE, comm.reduce_scatter, x.reshape(-1), room, op=code, **limits)
    landed(room, out)


def _op(opts: Any, op: Any) -> tuple[Any, Any]:
    """Return options and reduction of a call that may have named either."""
    if opts is not None and not hasattr(opts, "reduceOp"):  # the reduction by position
        return None, opts
    return opts, op if op is not None else ReduceOp.SUM if opts is None else opts.reduceOp


def _as_given(x: torch.Tensor, total: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what a program gave, and its sum: torch passes of a complex tensor a real view.

    A sparse view has indices of its own, so what is put there is not seen by the program.
    """
    given = x._base
    if given is None or not given.is_complex():
        return x, total
    return given, torch.view_as_complex(total)


def _into_sparse(x: torch.Tensor, total: torch.Tensor) -> None:
    """Put a sparse sum into the tensor that was given."""
    x.sparse_resize_and_clear_(x.shape, x.sparse_dim(), x.dense_dim())
    x.copy_(total)
