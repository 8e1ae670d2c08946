# SPDX-License-Identifier: Apache-2.0
"""What ranks of several machines tell of each other where a call does not end, or should not."""

from __future__ import annotations

import time

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_wired_ranks


def test_each_a_root_of_its_own_is_told_within_a_few_calls() -> None:
    """Roots of broadcasts receive nothing, so they have to listen all the same."""

    def body(comm: cl.Communicator) -> tuple[int, str]:
        comm.barrier()
        for number in range(100):
            try:
                comm.broadcast(np.full(4, 100.0 * comm.rank + number), root=comm.rank)
            except cl.MismatchError as error:
                return number, str(error)
            time.sleep(0.01)
        return 100, ""

    for calls, text in on_wired_ranks(2, body):
        assert calls <= 8, (calls, text)
        assert "broadcast #2" in text
        assert "rank 0 calls broadcast of 4 float64 (root 0" in text
        assert "rank 1 calls broadcast of 4 float64 (root 1" in text


def test_a_time_out_tells_which_message_a_rank_waits_for() -> None:
    def body(comm: cl.Communicator) -> tuple[int | None, str]:
        comm.barrier()
        try:
            if comm.rank == 1:
                comm.recv(np.empty(3), 0, tag=7, timeout=5)
            else:
                comm.allreduce(np.ones(3), timeout=1)
        except cl.CollectiveTimeoutError as error:
            return error.rank, str(error)
        return None, ""

    for rank, text in on_wired_ranks(2, body):
        assert rank == 1
        assert "gave up after 1 s: rank 1" in text
        assert "is blocked in recv from rank 0 (tag 7)" in text


def test_a_time_out_of_a_message_tells_in_which_call_the_sender_is() -> None:
    def body(comm: cl.Communicator) -> str:
        comm.barrier()
        try:
            if comm.rank == 1:
                comm.allreduce(np.ones(3), timeout=5)
            else:
                comm.recv(np.empty(3), 1, timeout=1)
        except cl.CollectiveTimeoutError as error:
            return str(error)
        return ""

    for text in on_wired_ranks(2, body):
        assert "has not sent a message that fits, but called allreduce #2" in text, text


def test_a_message_that_came_is_not_told_afterwards() -> None:
    """A rank that was blocked in recv and goes on is not taken for blocked any more."""

    def body(comm: cl.Communicator) -> str:
        comm.barrier()
        if comm.rank == 0:
            time.sleep(0.8)
            comm.send(np.ones(3), 1)
        else:
            comm.recv(np.empty(3), 0)
            time.sleep(2.5)
        try:
            comm.allreduce(np.ones(3), timeout=1)
        except cl.CollectiveTimeoutError as error:
            return str(error)
        return ""

    told = on_wired_ranks(2, body)
    assert "rank 1" in told[0], told
    assert "is silent" in told[0], told
    assert "blocked" not in told[0]


@pytest.mark.parametrize("rests", [0.0, 1.2, 3.5])
def test_both_calls_are_told_where_one_rank_has_left_its_own(rests: float) -> None:
    """Rank 1 broadcasts, is done with it at once, and computes."""

    def body(comm: cl.Communicator) -> str:
        comm.barrier()
        try:
            if comm.rank == 1:
                comm.broadcast(np.ones(9), root=1)
                time.sleep(rests)
                comm.barrier()
            else:
                time.sleep(0.3)
                comm.allreduce(np.ones(9))
        except cl.MismatchError as error:
            return str(error)
        return ""

    told = on_wired_ranks(2, body)
    assert "allreduce of 9" in told[0], told
    assert "allreduce of 9" in told[1], told
    if rests < 2:
        assert "broadcast of 9" in told[0], told
    else:
        assert "has not said which, as it is in no call any more" in told[0], told
    assert "broadcast of 9" in told[1] or "barrier #3" in told[1], told
