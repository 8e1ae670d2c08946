# SPDX-License-Identifier: Apache-2.0
"""Two processes that come as one rank to a store of torch: all are told, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import collectives as cl
from collectives import errors
from collectives.launchers import attendance
from collectives.launchers.attendance import Attendance
from collectives.launchers.torch_store import TorchStore
from tests.python.test_meeting_by_hand import Stored

TWICE = "two processes have come as rank"


def raised(work: Callable[[], object]) -> str:
    """Return what a rank raises."""
    with pytest.raises(errors.CollectiveError) as caught:
        work()
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize(
    "ranks", [(0, 0), (0, 1, 1), (0, 0, 1), (1, 1), (2, 2, 2), (0, 1, 1, 2, 2)]
)
def test_all_are_told_of_a_rank_that_comes_twice(ranks: tuple[int, ...]) -> None:
    """Another rank is wanting, so nobody would meet."""
    store = Stored()

    def rank(r: int) -> str:
        return raised(lambda: cl.Communicator.from_store(store, r, 4, timeout=60))

    begin = time.monotonic()
    with ThreadPoolExecutor(len(ranks)) as pool:
        said = list(pool.map(rank, ranks))
    assert time.monotonic() - begin < 30  # of 60
    for r, text in zip(ranks, said, strict=True):
        assert text.startswith("BootstrapError: rank "), text
        assert f" is there twice: {TWICE}" in text
        assert f"(this is rank {r} of 4)" in text


def opened(store: Stored, number: int) -> TorchStore:
    return TorchStore(store, f"collectives/4.{number}/")


def present(store: Stored, number: int) -> Attendance:
    return Attendance(lambda at: opened(store, at), number, 2, 4)


def test_who_comes_when_a_rank_was_found_twice_is_told_at_once() -> None:
    """The other two have left by then, so nobody answers."""
    store = Stored()
    store.add("collectives/4.2", 2)
    first, second = present(store, 0), present(store, 1)
    first.__enter__()
    second.__enter__()
    for each in first, second:
        with pytest.raises(errors.BootstrapError, match=TWICE) as caught:
            each.check()
        each.__exit__(None, caught.value, None)
    begin = time.monotonic()
    for _ in range(2):  # and who comes behind that one
        text = raised(lambda: cl.Communicator.from_store(store, 2, 4, timeout=60))
        assert f"is there twice: {TWICE} 2" in text
    assert time.monotonic() - begin < 30


class Leaves(Stored):
    """A store that is slow: while it is asked for the end of a rank, that rank leaves."""

    left: Callable[[], None] | None = None

    def check(self, keys: list[str]) -> bool:
        there = super().check(keys)
        if self.left is not None and keys[0].endswith("done2"):
            left, self.left = self.left, None
            left()
        return there


def test_who_comes_while_its_rank_leaves_is_told() -> None:
    store = Leaves()
    first, second = present(store, 0), present(store, 1)
    first.__enter__()
    error = errors.CollectiveTimeoutError("time is up", 2)
    store.left = lambda: first.__exit__(None, error, None)
    second.__enter__()
    assert store.left is None
    with pytest.raises(errors.BootstrapError, match=TWICE):
        second.check()


def test_who_gave_up_may_come_again() -> None:
    store = Stored()
    for _ in range(2):
        text = raised(lambda: cl.Communicator.from_store(store, 0, 2, timeout=0.3))
        assert text.startswith("CollectiveTimeoutError: "), text
    raised(lambda: cl.Communicator.from_store(store, 1, 2, timeout=0.01))
    raised(lambda: cl.Communicator.from_store(store, 1, 2, timeout=0.01))

    def rank(r: int) -> list[float]:
        with cl.Communicator.from_store(store, r, 2, timeout=30) as comm:
            return list(comm.allreduce(np.ones(2)))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(rank, range(2))) == [[2.0, 2.0]] * 2


def test_a_rank_that_was_killed_may_be_started_again() -> None:
    """Nobody has seen it leave, but nobody answers for it, either."""
    store = Stored()
    store.add("collectives/2.1", 1)
    store.set("collectives/2.0/who1", b"of another host")
    raised(lambda: cl.Communicator.from_store(store, 0, 2, timeout=0.01))

    def rank(r: int) -> int:
        with cl.Communicator.from_store(store, r, 2, timeout=30) as comm:
            return comm.size

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(rank, range(2))) == [2, 2]


def met_by_another(store: Stored, who: str) -> None:
    """Make the store what it is when rank 0 has met, in another process."""
    store.add("collectives/2.0", 1)
    store.set("collectives/2.0/who0", who.encode())
    store.set("collectives/2.0/done0", b"1")


def test_who_comes_when_its_rank_has_met_is_told_what_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Stored()
    met_by_another(store, "of another host 1 1")
    text = raised(lambda: cl.Communicator.from_store(store, 0, 2, timeout=0.3))
    assert "another process has come as rank 0 to this store before" in text
    assert text.startswith("CollectiveTimeoutError: ")
    monkeypatch.setattr(attendance, "PATIENCE", 0.1)
    alive, store = attendance.process(1), Stored()  # process 1 is there, and is not this one
    met_by_another(store, alive)
    text = raised(lambda: cl.Communicator.from_store(store, 0, 2, timeout=60))
    assert text.startswith(f"BootstrapError: rank 0 is there twice: {TWICE} 0"), text
    assert "process 1 of this host has met the others there" in text
    store = Stored()
    met_by_another(store, alive + "0")  # whose number another process has now
    text = raised(lambda: cl.Communicator.from_store(store, 0, 2, timeout=0.5))
    assert text.startswith("CollectiveTimeoutError: "), text
