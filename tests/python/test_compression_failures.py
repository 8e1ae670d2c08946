# SPDX-License-Identifier: Apache-2.0
"""Compressed calls that fail: what is kept stays as it was, and one time-out is for all of them."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.compression import time_left
from collectives.compression.agreement import compared
from collectives.names import Rest
from tests.python.ranks import on_ranks

MADE: dict[str, dict[str, Any]] = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "threshold": {"reuse": 3},
    "all": {"momentum": 0.5, "reuse": 3, "of_sum": True},
}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


@pytest.mark.parametrize("calls_before", [0, 2])
@pytest.mark.parametrize("name", MADE)
def test_a_call_that_fails_changes_nothing(name: str, calls_before: int) -> None:
    """All are told of the other operation, and try again elsewhere: as if nothing had happened."""
    rng = np.random.default_rng(4)
    parts = rng.standard_normal((calls_before + 1, 2, 400))

    def body(comm: cl.Communicator) -> None:
        topk, other = (cl.TopK(0.05, **MADE[name]) for _ in range(2))
        for step in range(calls_before):
            for each in (topk, other):
                comm.allreduce(parts[step, comm.rank].copy(), compress=each)
        spare = comm.dup()  # ranks that made different calls make no more on a communicator
        before, x = topk.state(), parts[-1, comm.rank].copy()
        with pytest.raises(cl.MismatchError):
            comm.allreduce(x, compress=topk, op="avg" if comm.rank else "sum")
        same(topk.state(), before)
        np.testing.assert_array_equal(x, parts[-1, comm.rank])
        result = spare.allreduce(x, compress=topk)
        expected = spare.allreduce(parts[-1, comm.rank].copy(), compress=other)
        np.testing.assert_array_equal(result, expected)
        same(topk.state(), other.state())

    on_ranks(2, body)


LIMIT = 1.5  # seconds that a call may take


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return what steps of calls are given as their time-outs, as they come."""
    given: list[float] = []

    def noted(left: float, of: float) -> Rest:
        given.append(left)
        return Rest(left, of)

    monkeypatch.setattr(time_left, "Rest", noted)
    return given


class Slow:
    """What another rank makes of its part of a call: late at first, and then not at all."""

    def __init__(self, comm: cl.Communicator, seconds: float) -> None:
        self.comm, self.seconds = comm, seconds

    def __call__(self, x: Any) -> None:
        time.sleep(self.seconds)
        most = np.array([np.abs(x).max()], np.float64)
        rest = Rest(20.0, 20.0)
        # What FP8 begins with.
        compared(self.comm, most, "max", rest, how_made="FP8 (e4m3)", of=x)


def test_one_time_out_for_all_steps_of_fp8(rests: list[float]) -> None:
    """The first of two allreduces takes most of the time; the second one gets what is left."""

    def body(comm: cl.Communicator) -> None:
        x = np.ones(10)
        comm.barrier()
        if comm.rank:
            Slow(comm, 0.8 * LIMIT)(x)
            time.sleep(LIMIT)
        else:
            with pytest.raises(cl.CollectiveTimeoutError):
                comm.allreduce(x, compress=cl.FP8(), timeout=LIMIT)

    on_ranks(2, body)
    assert rests[-1] < 0.5 * LIMIT


def test_what_encoding_takes_counts(rests: list[float]) -> None:
    def encode(x: Any) -> Any:
        time.sleep(0.75 * LIMIT)
        return x

    def body(comm: cl.Communicator) -> None:
        if comm.rank:
            time.sleep(1.5 * LIMIT)
            return
        slow = cl.codec(encode, lambda code, n: code)
        with pytest.raises(cl.CollectiveTimeoutError):
            comm.allreduce(np.ones(3), compress=slow, timeout=LIMIT)

    on_ranks(2, body)
    assert rests[-1] <= 0.25 * LIMIT


def test_the_time_out_of_the_communicator_is_for_all_steps_too(rests: list[float]) -> None:
    def body(comm: cl.Communicator) -> None:
        comm.barrier()
        if comm.rank:
            Slow(comm, 0.8 * LIMIT)(np.ones(10))
            time.sleep(LIMIT)
        else:
            with pytest.raises(cl.CollectiveTimeoutError):
                comm.allreduce(np.ones(10), compress=cl.FP8())

    on_ranks(2, body, timeout=LIMIT)
    assert rests[-1] < 0.5 * LIMIT


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (lambda: cl.TopK(0.1), "sparse allreduce #2"),
        (lambda: cl.TopK(0.1, of_sum=True), "sparse allreduce #2"),
        (cl.FP8, "allreduce #2"),
        (lambda: cl.codec(lambda x: x, lambda code, n: code), "allreduce #2"),
    ],
)
def test_a_time_out_tells_the_call_and_what_was_asked_for(make: Any, call: str) -> None:
    """Not what was left of it."""
    over = threading.Event()

    def body(comm: cl.Communicator) -> None:
        comm.barrier()
        said = f"^{call}: rank 0 gave up after 0.25 s: rank 1"
        if comm.rank == 0:
            with pytest.raises(cl.CollectiveTimeoutError, match=said):
                comm.allreduce(np.ones(40), compress=make(), timeout=0.25)
            over.set()
        else:
            assert over.wait(30)  # in no call: a message against a collective is told sooner
            with pytest.raises(cl.CollectiveTimeoutError, match=said):
                comm.recv(np.empty(1), source=0)

    on_ranks(2, body)


def test_who_is_interrupted_between_calls_tells_the_others() -> None:
    def encode(_: Any) -> Any:
        raise KeyboardInterrupt

    def body(comm: cl.Communicator) -> None:
        if comm.rank:
            with pytest.raises(cl.AbortedError, match="in allreduce by KeyboardInterrupt"):
                comm.allreduce(np.ones(3), compress=cl.codec(lambda x: x, lambda code, n: code))
            return
        with pytest.raises(KeyboardInterrupt):
            comm.allreduce(np.ones(3), compress=cl.codec(encode, lambda code, n: code))

    on_ranks(2, body)


@pytest.mark.parametrize("timeout", [0, -1, "soon", float("nan")])
def test_times_that_are_none_are_refused(timeout: Any) -> None:
    def body(comm: cl.Communicator) -> None:
        for compress in (cl.TopK(0.5), cl.FP8(), cl.codec(lambda x: x, lambda code, n: code)):
            with pytest.raises(cl.InvalidArgumentError, match="allreduce: timeout is"):
                comm.allreduce(np.ones(3), compress=compress, timeout=timeout)

    on_ranks(1, body)
