# SPDX-License-Identifier: Apache-2.0
"""One clock for the ranks of several machines."""

from __future__ import annotations

import threading
import time

import pytest

import collectives as cl
from collectives import clocks
from collectives.clocks import best, seconds_to_rank_0
from tests.python.ranks import on_ranks, on_wired_ranks

AHEAD_S = 1000


def test_the_shortest_trips_tell_the_offset() -> None:
    late = [(1000 * i, 1000 * i + 70_000 + 900, 1000 * i + 1000) for i in range(20)]
    good = [(i, i + 70_000 + 50, i + 100) for i in range(5)]
    assert best([*late, *good, *late]) == (70_000, 50)


def test_ranks_of_one_machine_have_one_clock() -> None:
    assert on_ranks(3, seconds_to_rank_0) == [0.0] * 3
    assert on_wired_ranks(3, seconds_to_rank_0) == [0.0] * 3


class _Time:
    """The time, which some threads see too far ahead."""

    def __init__(self) -> None:
        self.ahead: set[int] = set()

    def monotonic_ns(self) -> int:
        ahead = AHEAD_S if threading.get_ident() in self.ahead else 0
        return time.monotonic_ns() + ahead * 10**9


def test_a_clock_that_is_ahead_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _Time()
    monkeypatch.setattr(clocks, "time", shown)
    monkeypatch.setattr(clocks, "clock", lambda: str(threading.get_ident() in shown.ahead))

    def work(comm: cl.Communicator) -> float:
        if comm.rank > 0:
            shown.ahead.add(threading.get_ident())
        return seconds_to_rank_0(comm)

    first, *others = on_wired_ranks(3, work)
    assert first == 0.0
    assert len(others) == 2
    for add in others:
        assert abs(add + AHEAD_S) < AHEAD_S / 10  # half of a question and its answer at most
