# SPDX-License-Identifier: Apache-2.0
"""Which calls take the short way of all_reduce: programs that check their own results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch import distributed as dist

from collectives.torch import at_once
from tests.backend.methods import LONG, equal


class Marked(torch.Tensor):
    """What a program may make of a tensor; torch makes one of whatever comes from it."""


@contextmanager
def _seen() -> Iterator[list[bool]]:
    """Note of each call that may go the short way whether it did."""
    taken: list[bool] = []
    reduced = at_once.reduced

    def watched(*call: Any) -> list[torch.Tensor] | None:
        found = reduced(*call)
        taken.append(found is not None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "reduced", watched)
        yield taken


def _profiled(x: torch.Tensor, group: Any) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        dist.all_reduce(x, group=group)


def _behind_another(x: torch.Tensor, group: Any) -> None:
    """While another call is in flight it waits for its turn."""
    options, goes_on = dist.AllreduceOptions(), threading.Event()
    options.asyncOp = False
    held = group.communicator._submit("held", goes_on.wait)
    assert at_once.reduced(group.communicator, [x], options) is None
    goes_on.set()
    dist.all_reduce(x, group=group)
    assert held.done()


def _with_time(x: torch.Tensor, group: Any) -> None:
    options = dist.AllreduceOptions()
    options.asyncOp, options.timeout = False, LONG
    group.allreduce([x], options).wait()


def _later(x: torch.Tensor, group: Any) -> None:
    work = dist.all_reduce(x, group=group, async_op=True)
    assert work is not None
    work.wait()


CALLS: dict[str, Callable[[torch.Tensor, Any], Any]] = {
    "plain": lambda x, group: dist.all_reduce(x, group=group),
    "async": _later,
    "after async": lambda x, group: dist.all_reduce(x, group=group),
    "with a time-out": _with_time,
    "under a profiler": _profiled,
    "behind another": _behind_another,
    "of a parameter": lambda x, group: dist.all_reduce(torch.nn.Parameter(x), group=group),
    "of a kind": lambda x, group: dist.all_reduce(x.as_subclass(Marked), group=group),
}


def ways() -> dict[str, list[bool]]:
    """Make each call; return which ways they took."""
    group, size, found = dist.new_group(), dist.get_world_size(), {}
    for name, call in CALLS.items():
        x = torch.full((3,), 1.0 + dist.get_rank())
        with _seen() as taken:
            call(x, group)
        equal(x, [size * (size + 1) / 2] * 3)
        found[name] = taken
    group.set_timeout(timedelta(seconds=30))
    with _seen() as taken:
        dist.all_reduce(torch.ones(3), group=group)
    return {**found, "after set_timeout": taken}
