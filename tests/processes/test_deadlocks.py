# SPDX-License-Identifier: Apache-2.0
"""A rank that waits for a message of one that waits for it in a collective: both are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.patience import promised
from tests.processes.deadlocks import CASES, SENDS
from tests.processes.jobs import found

pytestmark = pytest.mark.processes

ALL = CASES | SENDS


@pytest.fixture(scope="module", params=[2, 3], ids=["p=2", "p=3"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What each rank was told, by case."""
    return found(request.param, "deadlocks.stand_still", tmp_path_factory.mktemp("told"))


@pytest.mark.parametrize("case", ALL)
def test_all_ranks_are_told_who_waits_for_whom(told: list[Any], case: str) -> None:
    for rank, cases in enumerate(told):
        answer = cases[case]
        assert answer["error"] == "MismatchError", f"rank {rank}: {answer}"
        assert answer["rank"] == 1, f"rank {rank}: {answer}"
        assert "the ranks wait for each other: rank 0 in this message" in answer["text"]
        for word in (*ALL[case][2], "which needs rank 0"):
            assert word in answer["text"], f"rank {rank}: {answer}"
    assert len({cases[case]["text"] for cases in told}) == 1


def test_they_are_told_within_a_second(tmp_path: Path) -> None:
    best = dict.fromkeys(ALL, 60.0)
    for _ in range(3):  # the machine may be busy with something else
        told = found(2, "deadlocks.stand_still", tmp_path)
        for case in ALL:
            best[case] = min(best[case], *(cases[case]["seconds"] for cases in told))
        if max(best.values()) < promised(1):
            return
    assert {case: seconds for case, seconds in best.items() if seconds >= promised(1)} == {}
