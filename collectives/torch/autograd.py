# SPDX-License-Identifier: Apache-2.0
"""Collectives that gradients go through: each runs its transpose on the way back.

Every rank calls them in the same order, forth and back. ``group``: one of this backend, None the
default one. Inputs are not changed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from collectives.torch.creation import communicator_of


def allreduce(x: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Return the sum over all ranks; the gradient is the sum of theirs."""
    return _Allreduce.apply(x, communicator_of(group))


def broadcast(x: torch.Tensor, root: int = 0, group: Any = None) -> torch.Tensor:
    """Return the root's tensor; its gradient is the sum of all, that of others is zero."""
    return _Broadcast.apply(x, root, communicator_of(group))


def reduce(x: torch.Tensor, root: int = 0, group: Any = None) -> torch.Tensor:
    """Return the sum on the root, and zeros elsewhere; the gradient is the root's."""
    return _Reduce.apply(x, root, communicator_of(group))


def allgather(x: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Return the tensors of all, along the first axis; the gradient is the sum of its part."""
    return _Allgather.apply(x, communicator_of(group))


def reduce_scatter(x: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Return this rank's part of the sum, of the first axis; the gradient is that of all parts."""
    return _ReduceScatter.apply(x, communicator_of(group))


def alltoall(x: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Return this rank's part of every rank's tensor, of the first axis; so is the gradient."""
    return _Alltoall.apply(x, communicator_of(group))


class _Allreduce(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, comm: Any) -> torch.Tensor:
        ctx.comm = comm
        return comm.allreduce(_copy(x))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return ctx.comm.allreduce(_copy(gradient)), None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, root: int, comm: Any) -> torch.Tensor:
        ctx.comm, ctx.root = comm, root
        return comm.broadcast(_copy(x), root=root)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return _to_root(ctx.comm, gradient, ctx.root), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, root: int, comm: Any) -> torch.Tensor:
        ctx.comm, ctx.root = comm, root
        return _to_root(comm, x, root)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return ctx.comm.broadcast(_copy(gradient), root=ctx.root), None, None


class _Allgather(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, comm: Any) -> torch.Tensor:
        ctx.comm = comm
        return comm.allgather(x.contiguous())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return ctx.comm.reduce_scatter(gradient.contiguous()), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, comm: Any) -> torch.Tensor:
        ctx.comm = comm
        return comm.reduce_scatter(x.contiguous())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return ctx.comm.allgather(gradient.contiguous()), None


class _Alltoall(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, comm: Any) -> torch.Tensor:
        ctx.comm = comm
        return comm.alltoall(_copy(x))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return ctx.comm.alltoall(_copy(gradient)), None


def _copy(x: torch.Tensor) -> torch.Tensor:
    return x.detach().clone(memory_format=torch.contiguous_format)


def _to_root(comm: Any, x: torch.Tensor, root: int) -> torch.Tensor:
    total = _copy(x)
    comm.reduce(total, root=root)
    return total if comm.rank == root else torch.zeros_like(total)
