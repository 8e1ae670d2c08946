# SPDX-License-Identifier: Apache-2.0
"""Groups of the ranks of a communicator, with ranks that are processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.processes.groups import VICTIM
from tests.processes.jobs import collrun, found, read_rank
from tests.shares import few

pytestmark = pytest.mark.processes


@few("p", range(1, 9), [1, 2, 5])
def test_groups_of_every_kind(p: int, tmp_path: Path) -> None:
    for rank, checks in enumerate(found(p, "groups.everything", tmp_path)):
        for check, wrong in checks.items():
            assert wrong == [], f"rank {rank}, {check}"


@pytest.mark.all_cases
def test_a_thousand_groups_leave_nothing(tmp_path: Path) -> None:
    for before, after in found(3, "groups.loop", tmp_path):
        assert after == before


def test_groups_outlive_those_that_they_came_from(tmp_path: Path) -> None:
    assert found(4, "groups.orphans", tmp_path) == [[2, 2, 4, 2, 2]] * 4


def test_an_abort_ends_one_group(tmp_path: Path) -> None:
    told = "rank 1 aborted: no disk left"
    assert found(4, "groups.abort", tmp_path) == [[2, 4, 4]] * 2 + [[told, 4, 4]] * 2


def test_a_dead_rank_is_named_in_each_group_by_its_place_there(tmp_path: Path) -> None:
    command = ("-n", 5, "--grace", 10, "-m", "tests.processes.rank", "groups.death", tmp_path)
    done = collrun(*command)
    assert done.returncode != 0
    living = [rank for rank in range(5) if rank != VICTIM]
    for rank in living:
        outcome = read_rank(tmp_path, rank)
        assert outcome["living"] == len(living)
        assert outcome["took"] < 5
        odd, whole = outcome["told"]
        if rank % 2:
            assert (odd[0], odd[2]) == ("PeerLostError", 0)
            assert "rank 0 (pid " in odd[1]
            assert f", rank {VICTIM} of the world) died" in odd[1]
        else:
            assert odd == ["sum", 3, 0]
        assert (whole[0], whole[2]) == ("PeerLostError", VICTIM)
        assert "of the world" not in whole[1]


def test_ctrl_c_ends_a_split_everywhere(tmp_path: Path) -> None:
    first, *others = found(3, "groups.interrupt", tmp_path, tmp_path)
    assert first[0] == "KeyboardInterrupt"
    assert [other[0] for other in others] == ["AbortedError"] * 2


def test_who_shares_a_core_with_whom_decides(tmp_path: Path) -> None:
    two = len(os.sched_getaffinity(0)) > 1
    for places, chosen in (("010", "chain" if two else "direct"), ("011", "direct")):
        assert found(3, "groups.of_pinned", tmp_path, places) == [[chosen] * 3] * 3
