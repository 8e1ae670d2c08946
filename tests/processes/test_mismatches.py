# SPDX-License-Identifier: Apache-2.0
"""Ranks that do not make the same call are told so, all of them, with both calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.processes.jobs import found
from tests.processes.mismatches import CASES

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module", params=[2, 3], ids=["p=2", "p=3"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What each rank was told, by case."""
    return found(request.param, "mismatches.disagree", tmp_path_factory.mktemp("told"))


@pytest.mark.parametrize("case", CASES)
def test_every_rank_is_told_both_calls(told: list[Any], case: str) -> None:
    for rank, cases in enumerate(told):
        answer = cases[case]
        assert answer["error"] == "MismatchError", f"rank {rank}: {answer}"
        for word in (*CASES[case][2], "rank 1 "):
            assert word in answer["text"], f"rank {rank}: {answer}"
        assert answer["again"] == {key: answer[key] for key in ("error", "text", "rank")}


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_said_to_differ_that_does_not(told: list[Any], case: str) -> None:
    hidden = (
        "with other counts per rank",
        "whose schedules differ",
        "whose operations are numbers",
        "which differ further on",
    )
    for cases in told:
        text = cases[case]["text"]
        said = [words for words in hidden if words in text]
        assert said == [words for words in hidden if words in "".join(CASES[case][2])], text
        first, _, second = text.partition(": rank ")[2].partition(", rank ")
        alike = first.partition(" calls ")[2] == second.partition(" calls ")[2].partition(", w")[0]
        assert alike == bool(said), text


@pytest.mark.parametrize("case", CASES)
def test_all_ranks_are_told_the_same(told: list[Any], case: str) -> None:
    assert len({cases[case]["text"] for cases in told}) == 1


def test_they_are_told_within_a_second(tmp_path: Path) -> None:
    best = dict.fromkeys(CASES, 60.0)
    for _ in range(3):  # the machine may be busy with something else
        told = found(3, "mismatches.disagree", tmp_path)
        slowest = {case: max(cases[case]["seconds"] for cases in told) for case in CASES}
        best = {case: min(best[case], slowest[case]) for case in CASES}
        if max(best.values()) < 1:
            return
    assert {case: seconds for case, seconds in best.items() if seconds >= 1} == {}
