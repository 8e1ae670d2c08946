# SPDX-License-Identifier: Apache-2.0
"""Torch's coalescing blocks that name a device, and tensors whose elements share their memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed as dist

from tests.backend.methods import equal, me

_LARGE = 1 << 18


def blocks() -> None:
    """What begins in a block has ended when the block has, or its manager was waited for."""
    _, rank, size = me()
    device = torch.device("cpu")
    manager: Any = dist._coalescing_manager
    for later in (False, True):
        a, b = torch.ones(2), torch.ones(_LARGE)
        with manager(device=device, async_ops=later) as made:
            dist.all_reduce(a, async_op=True)
            dist.all_reduce(b, async_op=True)
        if later:
            made.wait()
        equal(a, [size] * 2)
        equal(b, [size] * _LARGE)
        x, got = torch.full((_LARGE,), float(rank)), torch.empty(_LARGE)
        with manager(device=device, async_ops=later) as made:
            dist.isend(x, (rank + 1) % size)
            dist.irecv(got, (rank - 1) % size)
        if later:
            made.wait()
        equal(got, [(rank - 1) % size] * _LARGE)
    with manager(device=device):
        pass


def expanded() -> None:
    """Tensors of ``expand`` that are only read."""
    group, rank, size = me()
    x = torch.tensor([[rank + 1.0], [rank + 2.0]]).expand(2, size)
    out = x if rank == 1 else torch.zeros(2, size)
    dist.broadcast(out, 1)
    equal(out, [[2] * size, [3] * size])
    total = torch.full((2, size), 1.0) if rank == 0 else x
    dist.reduce(total, 0)
    if rank == 0:
        equal(total[0], [1 + size * (size + 1) / 2 - 1] * size)
    parts = [torch.zeros(2, size) for _ in range(size)]
    dist.all_gather(parts, x)
    dist.gather(x, parts if rank == 0 else None)
    for other, part in enumerate(parts):
        equal(part[1], [other + 2] * size)
    out = torch.zeros(2, size)
    dist.scatter(out, [x] * size if rank == 0 else None)
    equal(out[1], [2] * size)
    group.alltoall(parts, [x] * size).wait()
    equal(parts[1][0], [2] * size)
