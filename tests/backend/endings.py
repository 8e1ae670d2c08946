# SPDX-License-Identifier: Apache-2.0
"""Groups that end with calls in flight, and tensors that functional collectives still own."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import torch
from torch import distributed as dist
from torch.distributed import _functional_collectives as functional

import collectives as cl

CALLS = 20


def sums_in_flight() -> list[float]:
    """Begin sums that take a while, leave the group, and return what the tensors hold."""
    group = dist.new_group()
    tensors = [torch.full((1 << 18,), i + 1.0) for i in range(CALLS)]
    works = [dist.all_reduce(x, group=group, async_op=True) for x in tensors]
    dist.destroy_process_group(group)
    for work in works:
        work.wait()
    return [float(x[-1]) for x in tensors]


def receive_in_flight() -> tuple[float, str, Any]:
    """Leave a group with a receive that nobody serves, and with a message that has come."""
    group = dist.new_group(timeout=timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    came = torch.zeros(3)
    first = dist.irecv(came, group_src=(rank - 1) % size, group=group, tag=1)
    waits = dist.irecv(torch.zeros(3), group_src=(rank + 1) % size, group=group, tag=2)
    dist.isend(torch.full((3,), float(rank)), group_dst=(rank + 1) % size, group=group, tag=1)
    assert first is not None
    first.wait()
    begin = time.monotonic()
    dist.destroy_process_group(group)
    took = time.monotonic() - begin
    try:
        assert waits is not None
        waits.wait()
    except cl.CollectiveError as error:
        return took, f"{type(error).__name__}: {error}", came.tolist()
    return took, "", came.tolist()


def of_functional() -> list[float]:
    """Sum what a functional collective has not waited for."""
    found: list[float] = []
    for call in (dist.all_reduce, lambda y: dist.broadcast(y, 0)):
        y = functional.all_reduce(torch.ones(4), "sum", dist.group.WORLD)
        call(y)
        found.append(float(y[0]))
    return found
