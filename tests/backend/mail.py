# SPDX-License-Identifier: Apache-2.0
"""Messages that nobody waits for, that several threads wait for, that are awaited for a moment."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
import torch
from torch import distributed as dist

from collectives import CollectiveTimeoutError

LARGE = 3 << 20  # elements: more than lies ready between two ranks


def unattended() -> None:
    """A large message goes on while its sender computes, and one that is only asked about."""
    rank = dist.get_rank()
    if rank == 0:
        first, second = torch.full((LARGE,), 1.0), torch.full((LARGE,), 2.0)
        works = [dist.isend(first, 1), dist.isend(second, 1, tag=4)]
        end = time.monotonic() + 60
        while not all(work.is_completed() for work in works) and time.monotonic() < end:
            pass
        assert all(work.is_completed() and work.is_success() for work in works)
    elif rank == 1:
        got = torch.empty(LARGE)
        for tag, value in ((4, 2.0), (0, 1.0)):
            dist.recv(got, 0, tag=tag)
            assert bool((got == value).all())
    dist.barrier()
    if rank == 0:
        work = dist.isend(torch.full((LARGE,), 3.0), 1)
    elif rank == 1:
        dist.recv(got, 0)
        assert bool((got == 3).all())
    dist.barrier()
    if rank == 0:  # without a look in between
        work.wait()


def by_threads() -> None:
    """Each of several threads waits for its own message; the last to come is the first awaited."""
    rank, threads = dist.get_rank(), 6
    failed: list[BaseException] = []

    def exchange(tag: int) -> None:
        x, got = torch.full((1000 * tag + 1,), float(tag)), torch.empty(1000 * tag + 1)
        try:
            for _ in range(20):
                work = dist.irecv(got, 1 - rank, tag=tag)
                dist.send(x, 1 - rank, tag=tag)
                work.wait()
                assert bool((got == tag).all())
        except BaseException as error:
            failed.append(error)

    if rank < 2:
        running = [threading.Thread(target=exchange, args=(tag,)) for tag in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(60)
            assert not thread.is_alive()
    assert not failed, failed


def awaited_for_a_moment() -> None:
    """A wait that is over leaves the message; one that has failed tells why each time."""
    rank = dist.get_rank()
    got = torch.zeros(3)
    work: Any = dist.irecv(got, 1) if rank == 0 else None
    if rank == 0:
        with pytest.raises(CollectiveTimeoutError, match=r"not done after 0\.05 s: it goes on"):
            work.wait(timedelta(milliseconds=50))
        assert not work.is_completed()
    dist.barrier()
    if rank == 1:
        dist.send(torch.ones(3), 0)
    if rank == 0:
        assert work.wait(timedelta(seconds=30))
        assert got.tolist() == [1, 1, 1]
        assert work.get_future().wait()[0] is got


def then_called() -> None:
    """What a future calls back may send and receive itself, while nobody else looks."""
    rank = dist.get_rank()
    if rank == 0:
        got, again = torch.zeros(2), torch.zeros(2)

        def answer(_: Any) -> float:
            dist.send(got + 1, 1)
            dist.recv(again, 1)
            return float(again.sum())

        future = dist.irecv(got, 1).get_future().then(answer)
        time.sleep(0.1)
        assert future.wait() == 8
    elif rank == 1:
        x = torch.ones(2)
        dist.send(x, 0)
        dist.recv(x, 0)
        assert x.tolist() == [2, 2]
        dist.send(2 * x, 0)


def of_any_bytes() -> None:
    """8-bit floats that nobody adds up arrive with every bit, from one and from anyone."""
    rank = dist.get_rank()
    for name in ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float8_e4m3fn"):
        bits = torch.arange(256, dtype=torch.int16).to(torch.uint8)
        x = bits.view(getattr(torch, name)).view(16, 16)
        got = torch.zeros(16, 16, dtype=torch.uint8).view(x.dtype)
        for source in (0, None):
            if rank == 0:
                dist.send(x, 1)
            elif rank == 1:
                assert dist.recv(got, source) == 0
                assert torch.equal(got.view(torch.uint8), bits.view(16, 16))
                got.view(torch.uint8).zero_()
