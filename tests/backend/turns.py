# SPDX-License-Identifier: Apache-2.0
"""Threads that make the same calls on one group: a program that checks its own results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import product
from typing import Any, TypeAlias

import torch
from torch import distributed as dist

from tests.backend.methods import equal

_CALLS = 150
Way: TypeAlias = Callable[[Any, torch.Tensor], None]


def _at_once(group: Any, x: torch.Tensor) -> None:
    dist.all_reduce(x, group=group)


def _later(group: Any, x: torch.Tensor) -> None:
    work = dist.all_reduce(x, group=group, async_op=True)
    assert work is not None
    work.wait()


def _in_a_list(group: Any, x: torch.Tensor) -> None:
    group.allreduce_coalesced([x]).wait()


def _two_waited(group: Any, x: torch.Tensor) -> None:
    works = [dist.all_reduce(y, group=group, async_op=True) for y in (x, torch.ones(7))]
    for work in works:
        assert work is not None
        work.wait()


def threads() -> None:
    """Pairs of ways in two threads: each call waits for its turn, and none gets another's sums."""
    size = dist.get_world_size()
    # Which thread's call comes first may differ between ranks: all must be alike.
    ways = (_at_once, _later, _two_waited)
    for pair in [*product(ways, ways), (_in_a_list, _in_a_list)]:
        group = dist.new_group()
        wrong: list[BaseException] = []

        def live(way: Way, group: Any = group, wrong: list[BaseException] = wrong) -> None:
            try:
                for _ in range(_CALLS):
                    x = torch.ones(7)
                    way(group, x)
                    equal(x, [size] * 7)
            except BaseException as error:
                wrong.append(error)

        both = [threading.Thread(target=live, args=(way,)) for way in pair]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        if wrong:
            raise wrong[0]
        dist.destroy_process_group(group)
