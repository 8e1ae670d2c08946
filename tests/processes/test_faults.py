# SPDX-License-Identifier: Apache-2.0
"""Rank 1 of 4 dies, leaves, is silent or is interrupted: the others are told, soon, and who."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.patience import promised
from tests.processes.faults import SCENARIOS, TRIES, VICTIM
from tests.processes.jobs import found

pytestmark = pytest.mark.processes

P = 4
OTHERS = [rank for rank in range(P) if rank != VICTIM]

# What each of the others must be told, and within how many seconds: the promises.
TOLD = {
    "kill": ("PeerLostError", "rank 1 (pid", "died", 1.0),
    "kill inside": ("PeerLostError", "rank 1 (pid", "died", 1.0),
    "leave": ("PeerLostError", "rank 1 (pid", "closed its communicator", 1.0),
    "abort": ("AbortedError", "rank 1 aborted", "no disk left", 1.0),
    "silence": ("CollectiveTimeoutError", "gave up after 0.3 s", "rank 1 is alive but silent", 1.3),
}

TOLD |= {
    "kill in a sparse call": TOLD["kill"],
    "abort in a sparse call": TOLD["abort"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the ranks have written what they were told."""
    made = tmp_path_factory.mktemp("faults")
    found(P, "faults.all_scenarios", made, made)
    return made


def tries(folder: Path, scenario: str) -> list[tuple[float, dict[int, Any]]]:
    """Return for each try when it happened, and what each rank has written."""
    first = list(SCENARIOS).index(scenario) * TRIES
    return [
        (
            float((folder / f"time.{number}").read_text()),
            {
                rank: json.loads(path.read_text())
                for rank in range(P)
                if (path := folder / f"{rank}.{number}.json").exists()
            },
        )
        for number in range(first, first + TRIES)
    ]


@pytest.mark.parametrize("scenario", TOLD)
def test_the_others_are_told_who_failed_and_how(folder: Path, scenario: str) -> None:
    error, *words, _ = TOLD[scenario]
    for _, told in tries(folder, scenario):
        assert [told[rank]["error"] for rank in OTHERS] == [error] * len(OTHERS)
        assert len({told[rank]["text"] for rank in OTHERS}) == 1
        for word in words:
            assert word in told[0]["text"]
        assert {told[rank]["rank"] for rank in OTHERS} == {VICTIM}


@pytest.mark.parametrize("scenario", TOLD)
def test_they_are_told_in_time(folder: Path, scenario: str) -> None:
    waits = [
        max(told[rank]["time"] - when for rank in OTHERS) for when, told in tries(folder, scenario)
    ]
    assert min(waits) < promised(float(TOLD[scenario][-1]))


def test_a_rank_that_stops_in_a_sparse_call_ends_it_in_time(folder: Path) -> None:
    waits = []
    for when, told in tries(folder, "silence in a sparse call"):
        # Who waits for it may be waited for.
        assert {told[rank]["error"] for rank in OTHERS} == {"CollectiveTimeoutError"}
        assert len({told[rank]["text"] for rank in OTHERS}) == 1
        assert "gave up after 0.3 s" in told[0]["text"]
        waits.append(max(told[rank]["time"] - when for rank in OTHERS))
    assert min(waits) < promised(1.3)


def test_those_that_are_left_sum_on(folder: Path) -> None:
    for _, told in tries(folder, "kill in a sparse call"):
        assert [told[rank]["left"] for rank in OTHERS] == [[1.0, 1.0, 1.0, 0.0, 3.0]] * 3


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name.endswith("a sparse call")])
def test_sparse_calls_after_a_failure_tell_its_cause(folder: Path, scenario: str) -> None:
    for _, told in tries(folder, scenario):
        for rank in OTHERS:
            assert told[rank]["again"] == told[rank]["text"]


@pytest.mark.parametrize(
    ("scenario", "call"),
    [
        ("interrupt", "broadcast"),
        ("interrupt in a sparse call", "sparse allreduce"),
        ("interrupt at work alone", "sparse allreduce"),
    ],
)
def test_ctrl_c_ends_a_blocked_call(folder: Path, scenario: str, call: str) -> None:
    waits = []
    for when, told in tries(folder, scenario):
        assert told[VICTIM]["error"] == "KeyboardInterrupt"
        waits.append(told[VICTIM]["time"] - when)
        for rank in OTHERS:
            assert told[rank]["error"] == "AbortedError"
            assert (
                f"rank 1 aborted: it was interrupted in {call} by KeyboardInterrupt"
                in (told[rank]["text"])
            )
    assert min(waits) < promised(0.2)
