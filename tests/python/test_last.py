# SPDX-License-Identifier: Apache-2.0
"""``comm.last``: what the last collective was, how long it took, and how much of that it waited."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.last import LastCall, bus_share
from tests.python.ranks import on_ranks, on_wired_ranks

P = 3
Work = Callable[[cl.Communicator], Any]
BOTH = pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
Among = Callable[[int, Work], list[Any]]


def again_and_again(comm: cl.Communicator) -> None:
    while True:
        comm.barrier()


def told(comm: cl.Communicator) -> cl.LastCall:
    last = comm.last
    assert last is not None
    return last


@BOTH
def test_every_kind_has_its_name_and_bytes(among: Among) -> None:
    n = 6  # float64
    calls: list[tuple[str, int, Work]] = [
        ("allreduce", n * 8, lambda comm: comm.allreduce(np.ones(n))),
        ("reduce_scatter", n * 8, lambda comm: comm.reduce_scatter(np.ones(n))),
        ("allgather", P * n * 8, lambda comm: comm.allgather(np.ones(n))),
        ("allgatherv", 6 * 8, lambda comm: comm.allgatherv(np.ones(comm.rank + 1), [1, 2, 3])),
        ("broadcast", n * 8, lambda comm: comm.broadcast(np.ones(n), 1)),
        ("reduce", n * 4, lambda comm: comm.reduce(np.ones(n, np.float32))),
        ("gather", P * n * 8, lambda comm: comm.gather(np.ones(n))),
        ("scatter", n * 8, lambda comm: comm.scatter(np.ones(n), np.ones(n // P))),
        ("alltoall", n * 8, lambda comm: comm.alltoall(np.ones(n))),
        ("scan", n * 8, lambda comm: comm.scan(np.ones(n))),
        ("barrier", 0, lambda comm: comm.barrier()),
    ]

    def work(comm: cl.Communicator) -> None:
        assert comm.last is None
        for i, (kind, nbytes, call) in enumerate(calls):
            call(comm)
            last = told(comm)
            assert (last.kind, last.nbytes, last.sequence) == (kind, nbytes, i + 1)
            assert last.algorithm in {a.name for a in cl.algorithms(kind.removesuffix("v"))}
            assert (last.mode == "wire") == (comm.transport == "tcp")
            assert last.seconds > 0
            assert 0 <= last.waiting <= 1
            rate = nbytes / last.seconds * bus_share(kind.removesuffix("v"), P)
            assert last.busbw == pytest.approx(rate) or (nbytes == 0 and math.isnan(last.busbw))
            assert comm.last == last  # to ask is no call

    among(P, work)


@BOTH
def test_who_waits_for_a_late_rank_says_so(among: Among) -> None:
    def work(comm: cl.Communicator) -> tuple[float, float]:
        assert comm.last is None
        comm.barrier()
        if comm.rank == 1:
            time.sleep(0.3)
        comm.allreduce(np.ones(2))
        last = told(comm)
        return last.seconds, last.waiting * last.seconds

    for rank, (seconds, waited) in enumerate(among(P, work)):
        assert seconds >= waited
        if rank != 1:
            assert waited >= 0.05  # this rank may have left the barrier late


def test_small_calls_are_timed_for_those_who_ask() -> None:
    def work(comm: cl.Communicator) -> None:
        comm.allreduce(np.ones(20_000))
        comm.barrier()
        first = told(comm)
        assert math.isnan(first.seconds)
        assert str(first).endswith("not timed, the next one is")
        comm.barrier()
        assert told(comm).seconds > 0

    def large(comm: cl.Communicator) -> None:
        comm.allreduce(np.ones(20_000))
        assert told(comm).seconds > 0

    on_ranks(2, work)
    on_ranks(2, large)
    on_wired_ranks(2, large)


def test_ways_of_calling_are_all_told() -> None:
    def work(comm: cl.Communicator) -> None:
        x = np.ones(5)
        comm.allreduce(x, async_op=True)
        assert told(comm).kind == "allreduce"  # waits for it
        call = comm.persistent.scan(x)
        call()
        assert (told(comm).kind, told(comm).algorithm) == ("scan", told(comm).algorithm)
        call.start()
        assert told(comm).sequence == comm.sequence  # finishes it first
        call.wait()
        comm.allreduce(x, algorithm="ring")
        assert (told(comm).algorithm, told(comm).nbytes) == ("ring", 40)
        before = told(comm)
        with pytest.raises(cl.CollectiveError):
            comm.allreduce(x, algorithm="swing", mode="push", op="avg", accumulate="complex64")
        with comm.group():
            comm.allreduce(x)
            assert told(comm) == before  # what the block will make is not made by asking
        assert told(comm).sequence == before.sequence + 1
        if comm.rank < 2:
            comm.sendrecv(x, 1 - comm.rank, np.ones(5))
        assert told(comm).kind == "allreduce"  # messages are no collectives
        comm.close()
        with pytest.raises(cl.ClosedError):
            _ = comm.last

    on_ranks(2, work)


@BOTH
def test_an_algorithm_of_the_program_has_its_name(among: Among) -> None:
    @cl.algorithm("broadcast", name="handed_on", chunks=1)
    def handed_on(b: cl.ScheduleBuilder) -> None:
        if b.rank == 0:
            b.send(0, 1, 0)
        else:
            b.recv(0, 0, 0)

    def work(comm: cl.Communicator) -> str:
        comm.broadcast(np.ones(4), algorithm="handed_on")
        return told(comm).algorithm

    assert among(2, work) == ["handed_on"] * 2


def test_after_a_failure_there_is_none() -> None:
    def work(comm: cl.Communicator) -> None:
        comm.barrier()
        assert comm.last is not None
        if comm.rank == 1:
            comm.abort("enough")
        with pytest.raises(cl.AbortedError):
            again_and_again(comm)
        assert comm.last is None

    on_ranks(2, work)


def test_it_prints_as_a_line() -> None:
    last = LastCall("allreduce", "ring", "staged", 3 << 19, 8.125e-4, 3.87e9, 0.25, 7)
    assert str(last) == (
        "allreduce of 1.5 MiB by ring (staged): 812.5 us, busbw 3.87 GB/s, 25% waiting"
    )
    assert str(LastCall("barrier", "dissemination", "inline", 0, 2e-6, math.nan, 0.0, 1)) == (
        "barrier by dissemination (inline): 2 us, 0% waiting"
    )
    assert "of 0 bytes" in str(LastCall("scan", "direct", "inline", 0, 2e-6, 0.0, 0.0, 1))
