# SPDX-License-Identifier: Apache-2.0
"""Every dtype with every operation: what there is a kernel for, and what is refused in words."""

from __future__ import annotations

import itertools

import pytest

import collectives as cl
from bench.gpu.team import Team
from tests.gpu.calls import Kind, Room, errors, on_all
from tests.oracle import DTYPES, PAIRS, ops_of

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

LOGICAL = ("land", "lor", "lxor")
HOW = (("direct_two_shot", "push"), ("ring", "staged"), ("direct_one_shot", "inline"))


def refused(dtype: str, op: str) -> bool:
    """Whether there is no kernel yet: pairs, and logical operations of numbers."""
    return dtype in PAIRS or (op in LOGICAL and dtype != "bool")


@pytest.mark.parametrize("ranks", range(1, 9))
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation(dtype: str, ranks: int, room: Room) -> None:
    with Team(ranks) as team:
        for op, (name, mode) in itertools.product(ops_of(dtype), HOW):
            if refused(dtype, op) or (mode == "inline" and DTYPES[dtype].itemsize > 8):
                continue
            call = Kind("allreduce", 131, dtype, op)
            assert on_all(team, room, call, algorithm=name, mode=mode) == [], (call, name, mode)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_no_kernel_does_is_refused_on_all_ranks_and_the_next_call_works(
    dtype: str, room: Room
) -> None:
    with Team(2) as team:
        for op in ops_of(dtype):
            if refused(dtype, op):
                call = Kind("allreduce", 8, dtype, op)
                for error in errors(team, room, call):
                    assert isinstance(error, cl.UnsupportedError)
                    assert "no kernel for" in str(error)
        assert on_all(team, room, Kind("allreduce", 8)) == []


def test_packets_refuse_elements_of_sixteen_bytes(room: Room) -> None:
    with Team(2) as team:
        call = Kind("allreduce", 8, "complex128")
        for error in errors(team, room, call, mode="inline"):
            assert isinstance(error, cl.UnsupportedError)
            assert "up to 8 bytes" in str(error)
