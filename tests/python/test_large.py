# SPDX-License-Identifier: Apache-2.0
"""Vectors of more elements than 31 bits count, on two ranks (``make test-large``: 7 GiB)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

pytestmark = [pytest.mark.large, pytest.mark.timeout(600)]

COUNT = 2_362_232_013  # 2.2 GiB of uint8
PERIOD = 65521  # no power of two: what is off by one shows
BLOCK = PERIOD * 512


def blocks(rows: list[Any]) -> Iterator[tuple[slice, Any]]:
    """Yield the stretches of a vector and what the sum of the ranks' operands is there."""
    period = np.sum(rows, axis=0, dtype=np.uint8)
    whole = np.tile(period, BLOCK // PERIOD + 1)
    for start in range(0, COUNT, BLOCK):
        place = slice(start, min(start + BLOCK, COUNT))
        shift = start % PERIOD
        yield place, whole[shift : shift + place.stop - place.start]


def row(rank: int) -> Any:
    return ((np.arange(PERIOD) * (7 + rank)) % 251).astype(np.uint8)


def operand(rank: int) -> Any:
    x = np.empty(COUNT, np.uint8)
    for place, values in blocks([row(rank)]):
        x[place] = values
    return x


def is_sum_of(x: Any, ranks: list[int]) -> bool:
    return all(np.array_equal(x[place], v) for place, v in blocks([row(r) for r in ranks]))


@pytest.mark.parametrize("algorithm", [None, "ring"])
def test_allreduce(algorithm: str | None) -> None:
    def run(comm: cl.Communicator) -> bool:
        x = operand(comm.rank)
        assert comm.allreduce(x, algorithm=algorithm, timeout=300) is x
        return is_sum_of(x, [0, 1])

    assert on_ranks(2, run) == [True, True]


def test_allreduce_by_reading_the_others_memory() -> None:
    def run(comm: cl.Communicator) -> bool:
        return is_sum_of(comm.allreduce(operand(comm.rank), mode="pull", timeout=300), [0, 1])

    assert on_ranks(2, run) == [True, True]


def test_broadcast() -> None:
    def run(comm: cl.Communicator) -> bool:
        x = operand(1) if comm.rank == 1 else np.zeros(COUNT, np.uint8)
        return is_sum_of(comm.broadcast(x, root=1, timeout=300), [1])

    assert on_ranks(2, run) == [True, True]


def test_parts_of_unequal_length() -> None:
    def run(comm: cl.Communicator) -> bool:
        x = operand(0) if comm.rank == 1 else np.arange(5, dtype=np.uint8)
        joined = comm.allgatherv(x, timeout=300)
        assert joined[:5].tolist() == [0, 1, 2, 3, 4]
        del x
        return len(joined) == COUNT + 5 and is_sum_of(joined[5:], [0])

    assert on_ranks(2, run) == [True, True]


def test_message() -> None:
    def run(comm: cl.Communicator) -> bool:
        if comm.rank == 0:
            comm.send(operand(0), 1, timeout=300)
            return True
        x, status = np.empty(COUNT, np.uint8), cl.Status()
        comm.recv(x, status=status, timeout=300)
        return status.count == COUNT and is_sum_of(x, [0])

    assert on_ranks(2, run) == [True, True]
