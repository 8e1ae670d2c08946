# SPDX-License-Identifier: Apache-2.0
"""DDP, FSDP, DTensor and the rest of torch's own get from this backend what they get from gloo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.backend.teams import Team

pytestmark = pytest.mark.extras

PROGRAMS = (
    "ddp",
    "ddp_small_buckets",
    "ddp_static_views",
    "ddp_join",
    "ddp_join_of_those_left",
    "ddp_unused",
    "ddp_sparse",
    "ddp_compiled",
    "zero",
    "fsdp1",
    "fsdp2",
    "dtensor",
    "tensor_parallel",
    "mesh",
    "checkpoint",
    "checkpoint_meanwhile",
    "pipeline",
    "functional",
    "autograd",
)
HOOKS = (
    "allreduce_hook",
    "fp16_compress_hook",
    "powerSGD_hook",
)
# Two ranks add two numbers, in whatever order. Of more the order of additions differs, and what
# training makes of that.
ROUNDING = {"fp16_compress_hook": 1e-2}


def numbers(result: Any) -> Iterator[float]:
    """Give all numbers of a nested list."""
    if isinstance(result, list | tuple):
        for one in result:
            yield from numbers(one)
    else:
        yield result


def same(ours: Team, gloo: Team, program: str, *arguments: str) -> None:
    """Check that both backends give equal results."""
    mine, its = ours.run(program, *arguments), gloo.run(program, *arguments)
    if ours.size > 2:
        bound = ROUNDING.get(arguments[0] if arguments else "", 1e-5)
        assert list(numbers(mine)) == pytest.approx(list(numbers(its)), rel=bound, abs=1e-6)
    else:
        assert mine == its


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_those_of_gloo(ours: Team, gloo: Team, program: str) -> None:
    same(ours, gloo, f"consumers.{program}")


@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_of_torch(ours: Team, gloo: Team, hook: str) -> None:
    same(ours, gloo, "consumers.ddp_hook", hook)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_compiled_collectives(ours: Team, gloo: Team, backend: str) -> None:
    same(ours, gloo, "consumers.compiled", backend)
