# SPDX-License-Identifier: Apache-2.0
"""Calls on lists of tensors: where their tensors lie, and which of them are one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import distributed as dist

from tests.backend.methods import equal, me


def lists() -> None:
    """Lists whose tensors are pieces of one: in order, in another order, with gaps, and aliases."""
    _, rank, size = me()
    whole = torch.arange(2.0 * size)
    layouts: tuple[Callable[[], list[torch.Tensor]], ...] = (
        lambda: list(torch.zeros(2 * size).chunk(size)),
        lambda: list(torch.zeros(2 * size).chunk(size))[::-1],
        lambda: [row[:2] for row in torch.zeros(size, 3)],
        lambda: [*torch.zeros(2 * size - 2).chunk(size - 1), torch.zeros(2)],
    )
    for parts in layouts:
        outs = parts()
        dist.all_gather(outs, whole[2 * rank : 2 * rank + 2])
        equal(torch.cat(outs), whole)
        ins = parts()
        for number, part in enumerate(ins):
            part.copy_(whole[2 * number : 2 * number + 2] + rank)
        before = [part.clone() for part in ins]
        out = torch.zeros(2)
        dist.reduce_scatter(out, ins)
        equal(out, size * whole[2 * rank : 2 * rank + 2] + size * (size - 1) / 2)
        outs = parts()
        dist.all_to_all(outs, ins)
        equal(torch.cat(outs), [2 * rank + i + other for other in range(size) for i in (0, 1)])
        dist.scatter(out, ins if rank == 1 else None, src=1)
        equal(out, whole[2 * rank : 2 * rank + 2] + 1)
        equal(torch.cat(ins), torch.cat(before))
        # What a call writes is one of the tensors that it reads.
        dist.all_gather(outs, outs[0].fill_(rank))
        equal(torch.cat(outs), [other for other in range(size) for _ in (0, 1)])
        dist.all_to_all(ins, ins)
        equal(torch.cat(ins), [2 * rank + i + other for other in range(size) for i in (0, 1)])
        dist.reduce_scatter(before[0], before)
        equal(before[0], size * whole[2 * rank : 2 * rank + 2] + size * (size - 1) / 2)
