# SPDX-License-Identifier: Apache-2.0
"""Calls with tensors that are no plain vectors in memory: of none, of parts, of another kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import distributed as dist


def _freed(*shape: int, left: int = 0) -> torch.Tensor:
    """Return a tensor whose storage is freed, as FSDP does it with parameters, or cut."""
    x = torch.ones(*shape)
    x.untyped_storage().resize_(left)
    return x


def _strided() -> torch.Tensor:
    x = torch.ones(4, 4)[:, ::2]
    x.untyped_storage().resize_(0)
    return x


def _nested() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that strided ones are a prototype
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def calls(size: int) -> dict[str, Callable[[Any], Any]]:
    """Return calls by what is wrong with them."""
    full, window = torch.ones(4), torch.ones(4).as_strided((3, 2), (1, 1))
    none, nested, lists = _freed(4), _nested(), [torch.ones(4) for _ in range(size)]
    gone = [_freed(4) for _ in range(size)]
    functional = torch._to_functional_tensor(torch.ones(3))
    return {
        "freed": lambda group: dist.all_reduce(none, group=group),
        "freed strided": lambda group: dist.all_reduce(_strided(), group=group),
        "freed later": lambda group: _waited(dist.all_reduce(none, group=group, async_op=True)),
        "freed room": lambda group: dist.all_gather(gone, full, group=group),
        "freed parts": lambda group: dist.reduce_scatter(torch.ones(4), gone, group=group),
        "freed list": lambda group: dist.all_to_all(lists, gone, group=group),
        "cut list": lambda group: dist.all_gather([_freed(4, left=4)] * size, full, group=group),
        "freed coalesced": lambda group: group.allreduce_coalesced([none, none]).wait(),
        "functional": lambda group: dist.all_reduce(functional, group=group),
        "nested": lambda group: dist.all_reduce(nested, group=group),
        "nested later": lambda group: _waited(dist.all_reduce(nested, group=group, async_op=True)),
        "nested broadcast": lambda group: dist.broadcast(nested, group_src=0, group=group),
        "window": lambda group: dist.all_reduce(window, group=group),
        "array": lambda group: group.allreduce(np.ones(3)),
        "number": lambda group: group.allreduce(3),
    }


def _waited(work: dist.Work | None) -> None:
    assert work is not None
    work.wait()
