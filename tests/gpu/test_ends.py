# SPDX-License-Identifier: Apache-2.0
"""Calls that differ, ranks that do not come, and ranks that abort; nobody waits for ever."""

from __future__ import annotations

import threading
import time

import pytest

import collectives as cl
from bench.gpu.arrays import GpuArray, GpuMemory
from bench.gpu.team import Team
from bench.gpu.yardsticks import Yardsticks
from tests.gpu.calls import Kind, Room, wrong

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]


def test_calls_that_differ_are_told_to_all(room: Room) -> None:
    with Team(3) as team:
        outcomes = team.outcomes(
            lambda comm: wrong(comm, room, Kind("allreduce", 7 if comm.rank == 2 else 8))
        )
        assert all(isinstance(error, cl.MismatchError) for error in outcomes)
        assert all("allreduce of 7 float32" in str(error) for error in outcomes)


def test_dtypes_that_differ_are_told_to_all(room: Room) -> None:
    with Team(2) as team:
        outcomes = team.outcomes(
            lambda comm: wrong(comm, room, Kind("allreduce", 8, ("float32", "int32")[comm.rank]))
        )
        assert all(isinstance(error, cl.MismatchError) for error in outcomes)


def test_who_does_not_come_is_named_in_time(room: Room) -> None:
    def work(comm: cl.Communicator) -> None:
        if comm.rank != 1:
            wrong(comm, room, Kind("allreduce", 8), timeout=0.3)

    with Team(3) as team:
        begin = time.monotonic()
        outcomes = team.outcomes(work)
        assert time.monotonic() - begin < 20
        assert outcomes[1] is None
        for error in (outcomes[0], outcomes[2]):
            assert isinstance(error, cl.CollectiveTimeoutError)
            assert "rank 1" in str(error)


def test_an_abort_ends_kernels_and_all_later_calls(yard: Yardsticks) -> None:
    """In the middle of calls, one after another: the GPU is done soon, and free for others."""
    n = 1 << 20
    arrays = [GpuArray(GpuMemory(yard, 4 * n), n, "float32") for _ in range(4)]
    with Team(4) as team:
        stop = threading.Timer(0.3, lambda: team.comms[0].abort("the test wants it"))

        def work(comm: cl.Communicator) -> None:
            while True:
                comm.allreduce(arrays[comm.rank], algorithm="ring", mode="staged")

        stop.start()
        begin = time.monotonic()
        outcomes = team.outcomes(work)
        yard.synchronize()
        assert time.monotonic() - begin < 30
        stop.join()
        assert all(isinstance(error, cl.AbortedError) for error in outcomes)
        again = team.outcomes(lambda comm: comm.allreduce(arrays[comm.rank]))
        assert all(isinstance(error, cl.AbortedError) for error in again)
    with Team(2) as team:
        total = [GpuArray(GpuMemory(yard, 4 * n), n, "float32") for _ in range(2)]
        team.run(lambda comm: comm.allreduce(total[comm.rank]))
        assert not total[0].host().any()
