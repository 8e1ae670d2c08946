# SPDX-License-Identifier: Apache-2.0
"""Long vectors that the kernel moves from one process to the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.jobs import collrun, found, read_rank
from tests.shares import few

pytestmark = pytest.mark.processes


@few("p", [2, 3, 5], [2, 3])
def test_both_ways_give_the_same(p: int, tmp_path: Path) -> None:
    for told in found(p, "reading.moved", tmp_path):
        assert told["wrong"] == []
        modes = ["pull", "staged"] if told["allowed"] else ["staged"]
        expected = dict.fromkeys(told["modes"], modes)
        # Blocks that change places are never read from where they came; sums of ranks that take
        # turns on a core neither.
        staged = ["alltoall in place"]
        if told["crowded"]:
            staged += ["allreduce", "allreduce in place"]
        assert told["modes"] == expected | {name: ["staged"] for name in staged}


def test_where_one_rank_may_not_all_are_staged(tmp_path: Path) -> None:
    for modes in found(3, "reading.denied", tmp_path):
        assert modes == ["staged"]


def test_a_rank_that_cannot_read_any_more_says_so(tmp_path: Path) -> None:
    told = found(2, "reading.lost_on_the_way", tmp_path)
    assert told[0] == told[1]
    if told[0] != "not allowed":
        assert "rank 1 could read the memory of the others when it began allgather" in told[0]
        assert "and then could not" in told[0]


def test_a_rank_that_dies_meanwhile_is_named(tmp_path: Path) -> None:
    collrun("-n", 2, "-m", "tests.processes.rank", "reading.killed", tmp_path)
    assert "rank 1 (pid" in read_rank(tmp_path, 0)
    assert "died" in read_rank(tmp_path, 0)
