# SPDX-License-Identifier: Apache-2.0
"""Calls in flight: handles, asyncio, order, groups, structures of arrays."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, NamedTuple

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks


def total(p: int) -> float:
    return p * (p + 1) / 2


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_every_collective_has_a_handle(p: int) -> None:
    def run(comm: cl.Communicator) -> None:
        r = comm.rank
        ones = np.full(2 * p, r + 1.0)
        flying = [
            (comm.allreduce(ones.copy(), async_op=True), np.full(2 * p, total(p))),
            (comm.reduce_scatter(ones.copy(), async_op=True), np.full(2, total(p))),
            (comm.allgather(np.full(1, r), async_op=True), np.arange(p)),
            (comm.allgatherv(np.full(r, r), async_op=True), np.repeat(np.arange(p), range(p))),
            (comm.alltoall(np.full(p, r), np.empty(p, int), async_op=True), np.arange(p)),
            (comm.scan(np.ones(1), async_op=True), np.full(1, r + 1.0)),
            (comm.broadcast(np.full(3, r), p - 1, async_op=True), np.full(3, p - 1)),
        ]
        barrier = comm.barrier(async_op=True)
        for pending, wanted in flying:
            assert isinstance(pending, cl.Pending)
            np.testing.assert_array_equal(pending.wait(20), wanted)
            assert pending.done()
            assert pending.exception() is None
            np.testing.assert_array_equal(pending.result(), wanted)
        assert barrier.wait(20) is None
        assert "done" in repr(barrier)

    on_ranks(p, run)


def test_calls_keep_their_order_with_those_that_wait() -> None:
    def run(comm: cl.Communicator) -> None:
        for turn in range(50):
            x = np.full(100, float(turn))
            pending = comm.allreduce(x, async_op=True)
            np.testing.assert_array_equal(comm.allreduce(np.ones(3)), np.full(3, 3.0))
            assert pending.done()
            comm.barrier()
            np.testing.assert_array_equal(pending.wait(), np.full(100, 3.0 * turn))

    on_ranks(3, run)


def test_many_in_flight_on_several_communicators() -> None:
    first, second = cl.local(2, timeout=20), cl.local(2, timeout=20)

    def run(rank: int) -> None:
        a, b = first[rank], second[rank]
        mine = [(a, b)[i % 2].allreduce(np.full(5, i), async_op=True) for i in range(200)]
        # The other communicator is free while one is blocked.
        for i, pending in enumerate(mine):
            np.testing.assert_array_equal(pending.wait(20), np.full(5, 2 * i))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for comm in (*first, *second):
        comm.close()


def test_await_sleeps() -> None:
    def run(comm: cl.Communicator) -> float:
        async def main() -> float:
            begin = time.thread_time()
            if comm.rank == 0:
                await asyncio.sleep(0.3)
            first = comm.allreduce(np.ones(4), async_op=True)
            second = comm.allreduce(np.full(4, 2.0), async_op=True)
            np.testing.assert_array_equal(await second, np.full(4, 4.0))
            np.testing.assert_array_equal(await first, np.full(4, 2.0))
            return time.thread_time() - begin

        return asyncio.run(main())

    used = on_ranks(2, run)
    assert max(used) < 0.2  # of 0.3 s: the loop did not poll


def test_an_await_that_is_cancelled_leaves_the_call_running() -> None:
    def run(comm: cl.Communicator) -> None:
        async def main() -> None:
            pending = comm.allreduce(np.ones(2), async_op=True)
            if comm.rank == 0:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(_of(pending), 0.05)
            np.testing.assert_array_equal(await pending, np.full(2, 2.0))

        if comm.rank == 1:
            time.sleep(0.2)
        asyncio.run(main())

    on_ranks(2, run)


async def _of(pending: cl.Pending) -> Any:
    return await pending


def test_errors_come_through_the_handle() -> None:
    def run(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError):
            comm.allreduce("text", async_op=True)  # a local error is told at once
        pending = comm.allreduce(np.ones(2 + comm.rank), async_op=True)
        assert isinstance(pending.exception(20), cl.MismatchError)
        with pytest.raises(cl.MismatchError):
            pending.wait()
        assert "failed" in repr(pending)

    on_ranks(2, run)


def test_wait_has_a_time_out_of_its_own() -> None:
    def run(comm: cl.Communicator) -> None:
        if comm.rank == 1:
            time.sleep(0.3)
        pending = comm.barrier(async_op=True)
        if comm.rank == 0:
            assert not pending.done()
            with pytest.raises(cl.CollectiveTimeoutError, match="goes on"):
                pending.wait(0.05)
            with pytest.raises(cl.CollectiveTimeoutError):
                pending.exception(0.01)
        pending.wait(20)

    on_ranks(2, run)


def test_close_ends_what_is_in_flight() -> None:
    comms = cl.local(2, timeout=20)
    pending = [comms[0].barrier(async_op=True) for _ in range(3)]
    time.sleep(0.05)
    comms[0].close()
    assert all(isinstance(p.exception(10), cl.CollectiveError) for p in pending)
    comms[1].close()


@pytest.mark.parametrize("p", [1, 2, 4])
def test_a_group_fuses_small_allreduces(p: int) -> None:
    def run(comm: cl.Communicator) -> None:
        arrays = [np.full(n, comm.rank + 1.0) for n in (1, 3, 0, 1000)]
        large = np.full(100_000, comm.rank + 1.0)
        other = np.full(4, comm.rank + 1, np.int32)
        most = np.full(2, comm.rank + 1.0)
        before = comm.sequence
        with comm.group():
            for array in arrays:
                assert comm.allreduce(array) is array
            comm.allreduce(large)
            comm.allreduce(other)
            comm.allreduce(most, op="max")
            pending = comm.allreduce(np.full((2, 2), 1.0)[:, :1], async_op=True)
            gathered = comm.allgather(np.full(1, comm.rank))
        assert comm.sequence - before == 6
        for array in (*arrays, large):
            np.testing.assert_array_equal(array, np.full(len(array), total(p)))
        np.testing.assert_array_equal(other, np.full(4, total(p)))
        np.testing.assert_array_equal(most, np.full(2, float(p)))
        np.testing.assert_array_equal(pending.wait(), np.full((2, 1), float(p)))
        np.testing.assert_array_equal(gathered, np.arange(p))

    on_ranks(p, run)


def test_a_group_of_async_calls_does_not_wait() -> None:
    left = threading.Event()

    def run(comm: cl.Communicator) -> None:
        if comm.rank == 1:
            assert left.wait(20)
        with comm.group():
            flying = [comm.allreduce(np.ones(3), async_op=True) for _ in range(4)]
        left.set()
        for pending in flying:
            np.testing.assert_array_equal(pending.wait(20), np.full(3, 2.0))

    on_ranks(2, run)


def test_order_is_kept_after_a_group_in_which_the_first_async_call_was_made() -> None:
    def run(comm: cl.Communicator) -> None:
        with comm.group():
            first = comm.allreduce(np.ones(3), async_op=True)
            comm.barrier()  # cannot wait for the end of the group
            second = comm.allreduce(np.ones(3), async_op=True)
        if comm.rank == 1:
            time.sleep(0.1)  # the second is still in flight on rank 0
        np.testing.assert_array_equal(comm.allreduce(np.ones(2)), np.full(2, 2.0))
        for pending in (first, second):
            np.testing.assert_array_equal(pending.wait(20), np.full(3, 2.0))

    def late(comm: cl.Communicator) -> None:
        if comm.rank == 1:
            time.sleep(0.1)
        run(comm)

    for work in (run, late):
        on_ranks(2, work)


def test_a_group_that_raises_makes_none_of_its_calls() -> None:
    def run(comm: cl.Communicator) -> None:
        x = np.ones(3)

        def group() -> None:
            with comm.group():
                comm.allreduce(x)
                raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            group()
        np.testing.assert_array_equal(x, np.ones(3))
        np.testing.assert_array_equal(comm.allreduce(x), np.full(3, 2.0))
        assert comm.sequence == 1

    on_ranks(2, run)


class Layer(NamedTuple):
    weight: Any
    bias: Any


def test_structures_come_back_as_they_were() -> None:
    def run(comm: cl.Communicator) -> None:
        tree = {"a": [np.ones(2), (np.ones((2, 2)),)], "b": Layer(np.ones(1), np.ones(100_000))}
        got = comm.allreduce(tree, op="sum")
        assert list(got) == ["a", "b"]
        assert isinstance(got["b"], Layer)
        assert got["a"][0] is tree["a"][0]
        for leaf in (got["a"][0], got["a"][1][0], got["b"].weight, got["b"].bias):
            np.testing.assert_array_equal(leaf, np.full(leaf.shape, 2.0))
        pending = comm.broadcast([np.full(3, comm.rank), np.full(1, comm.rank)], 1, async_op=True)
        np.testing.assert_array_equal(np.concatenate(pending.wait(20)), np.ones(4))
        assert comm.allreduce([]) == []
        with pytest.raises(cl.InvalidArgumentError, match="with 3 in it"):
            comm.allreduce({"a": 3})

    on_ranks(2, run)
