# SPDX-License-Identifier: Apache-2.0
"""What tensors may hold, and how it may lie in memory: programs that check their own results."""

from __future__ import annotations

import torch
from torch import distributed as dist

from tests.backend.methods import equal, me

DTYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64",
)  # fmt: skip


def allreduce_of_every_dtype() -> None:
    """What gloo takes, and what it does not."""
    _, rank, size = me()
    for name in DTYPES:
        x = torch.full((5,), rank + 1).to(getattr(torch, name))
        dist.all_reduce(x)
        equal(x.to(torch.complex128).real, [size * (size + 1) / 2] * 5)
    one_has_it = torch.arange(5) == rank
    dist.all_reduce(one_has_it)
    equal(one_has_it, (torch.arange(5) < size).tolist())


def allreduce_of_views() -> None:
    """Views with strides, a scalar, no elements at all; gradients of parameters."""
    _, rank, size = me()
    base = torch.arange(12.0).view(3, 4) + rank
    dist.all_reduce(base.t()[1:, ::2])
    aim = torch.arange(12.0).view(3, 4) + rank
    whole = sum(torch.arange(12.0).view(3, 4) + other for other in range(size))
    aim.t()[1:, ::2] = whole.t()[1:, ::2]
    equal(base, aim)
    scalar = torch.tensor(rank + 1.0)
    dist.all_reduce(scalar)
    equal(scalar, size * (size + 1) / 2)
    dist.all_reduce(torch.empty(0))
    negated = torch._neg_view(torch.tensor([1.0, 2.0]))
    dist.all_reduce(negated)
    equal(negated, [-size, -2 * size])
    conjugated = torch.tensor([1 + 2j, 3j]).conj()
    dist.reduce(conjugated, 0)
    if rank == 0:
        equal(conjugated.resolve_conj(), [size * (1 - 2j), size * -3j])
    parameter = torch.nn.Parameter(torch.ones(3))
    dist.all_reduce(parameter)
    equal(parameter.detach(), [size] * 3)


def sparse() -> None:
    """A sparse tensor travels as such."""
    _, rank, size = me()
    x = torch.sparse_coo_tensor([[rank, rank + 1]], [1.0, 2.0], (size + 1,))
    dist.all_reduce(x)
    equal(x.to_dense(), [1, *[3] * (size - 1), 2])
    rows = torch.sparse_coo_tensor([[rank, 5]], torch.ones(2, 3), (8, 3))
    dist.all_reduce(rows)
    assert rows.to_dense()[5].tolist() == [size] * 3
    # Of a complex one torch hands in a view, whose indices are its own.
    waves = torch.sparse_coo_tensor([[rank, size]], torch.tensor([1 + 1j, 2j]), (size + 1,))
    dist.all_reduce(waves)
    equal(waves.to_dense(), [*[1 + 1j] * size, 2j * size])
