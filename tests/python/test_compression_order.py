# SPDX-License-Identifier: Apache-2.0
"""Compressed, sparse and exact sums keep the order of calls: they read what those before wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

HELD_S = 0.05  # how long the calls before are in flight

WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": dict,
    "TopK": lambda: {"compress": cl.TopK(1.0)},
    "TopK of the sum": lambda: {"compress": cl.TopK(1.0, of_sum=True)},
    "FP8": lambda: {"compress": cl.FP8()},
    "codec": lambda: {"compress": cl.codec(lambda x: x, lambda code, n: code)},
    "adasum": lambda: {"op": "adasum"},
}


@contextmanager
def calls_held(comm: cl.Communicator) -> Iterator[None]:
    """Hold up what the communicator does in its own thread for a moment after the block began."""
    gate = threading.Event()
    comm._submit("gate", gate.wait)
    timer = threading.Timer(HELD_S, gate.set)
    timer.start()
    try:
        yield
    finally:
        timer.join()


@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_they_read_what_calls_before_wrote(way: str, strided: bool, async_op: bool) -> None:
    def body(comm: cl.Communicator) -> Any:
        base = np.full((1000, 2), 0.0 if comm.rank else 5.0)
        x, out = base[:, 0] if strided else base.reshape(-1), np.zeros((2000, 2))
        into = out[: x.size, 0] if strided else out.reshape(-1)[: x.size]
        with calls_held(comm):
            before = comm.broadcast(base, root=0, async_op=True)
            result = comm.allreduce(x, into, async_op=async_op, **WAYS[way]())
            assert (result.wait() if async_op else result) is into
        before.wait()
        return into.copy()

    for result in on_ranks(2, body):
        np.testing.assert_allclose(result, 5 if way == "adasum" else 10, rtol=2**-3)


@pytest.mark.parametrize("async_op", [False, True])
def test_sparse_values_and_indices_are_those_of_their_turn(async_op: bool) -> None:
    def body(comm: cl.Communicator) -> Any:
        places = np.arange(1000) if comm.rank == 0 else np.zeros(1000, int)
        values = np.full((1000, 2), 0.0 if comm.rank else 5.0)
        with calls_held(comm):
            before = [comm.broadcast(x, root=0, async_op=True) for x in (places, values)]
            found = comm.allreduce(
                cl.Sparse(places, values[:, 1], 5000), output="dense", async_op=async_op
            )
            found = found.wait() if async_op else found
        for call in before:
            call.wait()
        return found

    for found in on_ranks(2, body):
        np.testing.assert_array_equal(found, np.repeat([10.0, 0.0], [1000, 4000]))


def test_plans_are_made_of_what_indices_are_then() -> None:
    def body(comm: cl.Communicator) -> Any:
        places = np.zeros((50, 2), int)
        if comm.rank == 0:
            places[:, 0] = np.arange(50)
        with calls_held(comm):
            before = comm.broadcast(places, root=0, async_op=True)
            plan = comm.sparse_plan(places[:, 0], length=100)
        before.wait()
        return plan.reduce(np.arange(50.0))

    for found in on_ranks(2, body):
        np.testing.assert_array_equal(found, 2 * np.arange(50.0))


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("stacked", [False, True])
def test_exact_sums_are_of_what_calls_before_wrote(stacked: bool, strided: bool) -> None:
    def body(comm: cl.Communicator) -> Any:
        base = np.full((2, 1000, 2), 0.0 if comm.rank else 5.0)
        x = base[:, :, 0] if strided else base
        with calls_held(comm):
            before = comm.broadcast(base, root=0, async_op=True)
            found = comm.exact_sum(x if stacked else list(x))
        before.wait()
        with comm.group():
            comm.allreduce(base)
            whole = comm.exact_sum(x)
        return found, whole

    for found, whole in on_ranks(2, body):
        np.testing.assert_array_equal(found, 20)
        np.testing.assert_array_equal(whole, 40)


@pytest.mark.parametrize("of_sum", [False, True])
def test_one_topk_in_flight_and_at_once(of_sum: bool) -> None:
    """What the first call leaves is there for the second one, which comes while it is in flight."""

    def body(comm: cl.Communicator) -> Any:
        topk = cl.TopK(0.01, of_sum=of_sum)
        given = np.random.default_rng(comm.rank).integers(-9, 10, (2, 2000)).astype(float)
        with calls_held(comm):
            first = comm.allreduce(given[0].copy(), compress=topk, async_op=True)
            second = comm.allreduce(given[1].copy(), compress=topk)
        return given.sum(axis=0) - topk.residual, first.wait() + second

    ranks = on_ranks(2, body)
    for _, told in ranks:
        np.testing.assert_array_equal(told, ranks[0][0] + ranks[1][0])


def test_a_codec_that_fails_behind_a_call_in_flight_fails_alone() -> None:
    """As without a call before it: the others may go on, and so does this communicator."""

    def fails(x: Any) -> Any:
        raise ValueError("no code for this")

    def body(comm: cl.Communicator) -> None:
        with calls_held(comm), pytest.raises(ValueError, match="no code for this"):
            comm.allreduce(np.ones(3), compress=cl.codec(fails, lambda code, n: code))
        np.testing.assert_array_equal(comm.allreduce(np.ones(3)), 2)

    on_ranks(2, body)


def scaled(comm: cl.Communicator, kind: str) -> Any:
    """Return the ranks' sum of ones, by a call of the kind."""
    ones = np.ones(3)
    if kind == "in flight":
        return comm.allreduce(ones, async_op=True).wait(5)
    if kind == "structure":
        return comm.allreduce([ones, ones.copy()])[1]
    if kind == "structure in flight":
        return comm.allreduce([ones, ones.copy()], async_op=True).wait(5)[1]
    with comm.group():
        begun = comm.allreduce(ones, async_op=True)
        comm.barrier()
        comm.allreduce(ones.copy())
    return begun.wait(5)


@pytest.mark.parametrize("kind", ["in flight", "structure", "structure in flight", "group"])
def test_calls_of_a_codec_are_those_of_any_program(kind: str) -> None:
    """Rank 0 encodes in the thread of its calls in flight, as one is, and rank 1 where it calls."""

    def body(comm: cl.Communicator) -> Any:
        def encode(x: Any) -> Any:
            return x * scaled(comm, kind)

        whole = cl.codec(encode, lambda code, n: code / comm.size)
        if comm.rank:
            return comm.allreduce(np.ones(3), compress=whole)
        pending = comm.allreduce(np.ones(3), compress=whole, async_op=True)
        with comm.group():  # of the program, not of the codec
            return pending.wait(10)

    for found in on_ranks(2, body, timeout=5):
        np.testing.assert_array_equal(found, 2)


def test_who_is_told_of_an_end_does_not_wait_for_the_next_call() -> None:
    """They are told by the thread that is to make it."""

    def body(comm: cl.Communicator) -> None:
        gate = threading.Event()  # opened when it is said who is to be told
        comm._submit("gate", gate.wait)
        first = comm.allreduce(np.ones(3), async_op=True)
        second = comm.allreduce(np.ones(3), async_op=True)
        told = []

        def wait() -> None:
            with pytest.raises(cl.InvalidArgumentError, match="wait elsewhere"):
                second.wait(5)
            told.append(True)

        first.when_ended(wait)
        gate.set()
        np.testing.assert_array_equal(second.wait(10), comm.size)
        assert told

    on_ranks(2, body)
