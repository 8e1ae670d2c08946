# SPDX-License-Identifier: Apache-2.0
"""What Python adds to shrink() and revoke(): who lives goes on, and bad arguments are refused."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

P = 3


def again_and_again(comm: cl.Communicator) -> None:
    while True:
        comm.barrier()


def test_the_living_go_on_with_a_communicator_like_the_old_one() -> None:
    def work(comm: cl.Communicator) -> Any:
        comm.barrier()
        if comm.rank == 1:
            comm.close()
            return None
        with pytest.raises(cl.PeerLostError):
            again_and_again(comm)
        handle = comm.allreduce(np.ones(2), async_op=True)
        with pytest.raises(cl.PeerLostError):
            handle.wait()
        with comm.shrink() as living:
            total = living.allreduce(np.full(2, float(comm.rank)), async_op=True).wait()
            return living.rank, living.size, list(total)

    assert on_ranks(P, work) == [(0, 2, [2.0, 2.0]), None, (1, 2, [2.0, 2.0])]


def test_revoke_ends_a_call_of_another_thread() -> None:
    def work(comm: cl.Communicator) -> Any:
        if comm.rank == 0:
            threading.Timer(0.05, comm.revoke).start()
        with pytest.raises(cl.AbortedError, match="rank 0 revoked this communicator"):
            comm.recv(np.zeros(1), (comm.rank + 1) % P)
        with comm.shrink(timeout=10) as living:
            return int(living.allreduce(np.ones(1))[0])

    assert on_ranks(P, work) == [P] * P


def test_what_is_refused() -> None:
    def work(comm: cl.Communicator) -> None:
        for wrong in (-1.0, float("nan"), "soon"):
            with pytest.raises(cl.InvalidArgumentError, match="shrink: timeout"):
                comm.shrink(timeout=wrong)  # type: ignore[arg-type]
        assert comm.allreduce(np.ones(1))[0] == 1
        comm.shrink().close()
        with pytest.raises(
            cl.InvalidArgumentError, match=r"was shrunk before.*start anew where that failed"
        ):
            comm.shrink()
        comm.close()
        for call in (comm.shrink, comm.revoke):
            with pytest.raises(cl.ClosedError):
                call()

    on_ranks(1, work)


def test_what_comes_of_it_may_be_given_up_at_once() -> None:
    for _ in range(20):
        assert on_ranks(P, lambda comm: comm.shrink().size) == [P] * P
