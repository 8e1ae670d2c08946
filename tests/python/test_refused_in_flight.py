# SPDX-License-Identifier: Apache-2.0
"""A call in flight that one rank alone refuses: nothing behind it is made before that is heard.

The others wait for that call; what this rank makes next would meet them there, and be added to what
it has nothing to do with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

Begin: TypeAlias = Callable[[cl.Communicator], Any]


def fails(comm: cl.Communicator) -> Any:
    raise ValueError(f"no code on rank {comm.rank}")


def outside(comm: cl.Communicator) -> cl.Sparse:
    return cl.Sparse(np.array([1, 500 if comm.rank == 1 else 3]), np.ones(2), 5)


def sum_outside(comm: cl.Communicator) -> Any:
    return comm.allreduce(outside(comm), async_op=True, timeout=20)


def scatter_outside(comm: cl.Communicator) -> Any:
    x = cl.Sparse(np.array([1, 500 if comm.rank == 1 else 3]), np.ones(2), 6)
    return comm.reduce_scatter(x, async_op=True, timeout=20)


def residual_of_another_length(comm: cl.Communicator) -> Any:
    top = cl.TopK(0.5)
    top.residual = np.zeros(7 if comm.rank == 1 else 2)
    return comm.allreduce(np.ones(2), compress=top, async_op=True, timeout=20)


def encoder_that_raises(comm: cl.Communicator) -> Any:
    def encode(x: Any) -> Any:
        return fails(comm) if comm.rank == 1 else x

    codec = cl.codec(encode, lambda code, ranks: code)
    return comm.allreduce(np.ones(2), compress=codec, async_op=True, timeout=20)


WAYS = [
    sum_outside,
    scatter_outside,
    residual_of_another_length,
    encoder_that_raises,
]


def hundreds(comm: cl.Communicator, **options: Any) -> Any:
    return comm.allreduce(np.full(2, 100.0), timeout=20, **options)


@pytest.mark.parametrize("begin", WAYS)
def test_what_was_handed_in_behind_it_is_not_made(begin: Begin) -> None:
    def run(comm: cl.Communicator) -> None:
        first = begin(comm)
        second = hundreds(comm, async_op=True)
        if comm.rank == 1:
            with pytest.raises((cl.InvalidArgumentError, ValueError, RuntimeError)) as caught:
                first.wait(20)
            error = second.exception(20)
            assert isinstance(error, cl.CollectiveError)
            assert "allreduce was not made, because " in str(error)
            assert str(caught.value).split(": ")[-1] in str(error)
            comm.abort("rank 1 gives up")
        for pending in (first, second):
            assert pending.exception(20) is not None  # and no sum of what does not belong together

    on_ranks(2, run)


@pytest.mark.parametrize("begin", WAYS)
def test_what_comes_before_it_is_heard_is_not_made(begin: Begin) -> None:
    def run(comm: cl.Communicator) -> None:
        first = begin(comm)
        if comm.rank == 1:
            while not first.done():
                pass
            with pytest.raises(cl.CollectiveError, match=r"^allreduce was not made, because "):
                hundreds(comm)
            comm.abort("rank 1 gives up")
        assert first.exception(20) is not None

    on_ranks(2, run)


def all_refuse(comm: cl.Communicator) -> Any:
    return comm.allreduce(cl.Sparse(np.array([7]), np.ones(1), 5), async_op=True)


def test_once_it_is_heard_calls_are_made() -> None:
    """As all ranks have refused here."""

    def run(comm: cl.Communicator) -> None:
        for _ in range(3):
            first, second = all_refuse(comm), hundreds(comm, async_op=True)
            assert isinstance(first.exception(20), cl.InvalidArgumentError)
            third = hundreds(comm, async_op=True)
            assert "was not made" in str(second.exception(20))
            np.testing.assert_array_equal(third.wait(20), [200.0, 200.0])
            np.testing.assert_array_equal(hundreds(comm), [200.0, 200.0])

    on_ranks(2, run)


def test_asyncio_hears_of_it() -> None:
    def run(comm: cl.Communicator) -> None:
        async def work() -> None:
            with pytest.raises(cl.InvalidArgumentError):
                await all_refuse(comm)
            np.testing.assert_array_equal(await hundreds(comm, async_op=True), [200.0, 200.0])

        asyncio.run(work())

    on_ranks(2, run)


def test_a_structure_is_heard_as_a_whole() -> None:
    def run(comm: cl.Communicator) -> None:
        first = all_refuse(comm)
        tree = comm.allreduce([np.ones(2), np.ones(3)], async_op=True)
        with pytest.raises(cl.InvalidArgumentError, match="was not made"):
            tree.wait(20)
        assert first.done()
        np.testing.assert_array_equal(hundreds(comm), [200.0, 200.0])

    on_ranks(2, run)
