# SPDX-License-Identifier: Apache-2.0
"""NCCL as a candidate of the dispatcher, among processes: agreed, measured, forced, left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.processes.jobs import found_on_gpus

pytestmark = pytest.mark.processes
P = 2


def found(program: str, folder: Path, *arguments: str, **variables: str) -> list[Any]:
    return found_on_gpus(P, f"nccl_choice.{program}", folder, *arguments, **variables)


def test_what_is_faster_is_chosen_and_right(tmp_path: Path) -> None:
    for told in found("chosen", tmp_path):
        assert told["wrong"] == []
        assert told["ways"].pop("complex") == "launch"
        assert set(told["ways"].values()) == {"nccl"}, told["ways"]
        assert told["before"].endswith("nobody has asked for NCCL yet: the first such call does")
        assert told["text"] == (
            "allreduce of 4000 bytes of float32 on GPUs among 2 ranks: nccl\n  nccl was faster\n"
            "  ours 2e+03 us, nccl 1e+03 us: medians of 15 rounds at 4000 bytes"
        )


def test_all_ranks_choose_alike_whatever_each_has_measured(tmp_path: Path) -> None:
    told = found("differently", tmp_path)
    assert told[0] == told[1]
    assert told[0]["wrong"] == []
    assert told[0]["choices"] == ["ours", "nccl"]
    assert "ours 2e+03 us, nccl 3e+03 us" in told[0]["text"]


def test_it_is_asked_for_by_name(tmp_path: Path) -> None:
    for told in found("wanted", tmp_path):
        assert told["wrong"] == []
        assert told["ways"] == ["nccl", "nccl"]
        for said, part in zip(
            told["said"],
            (
                "is for calls of arrays on GPUs",
                "NCCL has no max of float32 with our results",
                "NCCL has no mode=, accumulate= and reproducible=",
                "on some rank arrays overlap",
                "not for persistent ones",
                "scan: algorithm 'nccl' is unknown",
            ),
            strict=True,
        ):
            assert part in said


def test_it_is_wished_for_by_a_variable(tmp_path: Path) -> None:
    wish = {"COLLECTIVES_ALGORITHM": "allreduce:nccl,broadcast:linear"}
    for told in found("by_variable", tmp_path, **wish):
        assert told["wrong"] == []
        assert told["ways"] == ["nccl", "launch", "launch"]
        assert "wished for by force()" in told["texts"][0]
        assert told["texts"][1].endswith("nccl\n  wished for by COLLECTIVES_ALGORITHM")
        assert told["texts"][2].endswith(
            "ours\n  another one is wished for by COLLECTIVES_ALGORITHM"
        )


def test_it_is_wished_for_within_a_block(tmp_path: Path) -> None:
    for told in found("by_force", tmp_path):
        assert told["wrong"] == []
        assert told["ways"] == ["nccl", "launch"]
        assert told["texts"] == [told["texts"][0], "rule"]
        assert told["texts"][0].endswith("nccl\n  wished for by force()")
        assert "algorithm 'nccl' is unknown" in told["said"][0]
        assert "algorithm 'mixed' is unknown" in told["said"][1]


@pytest.mark.parametrize(
    ("step", "ranks", "why", "warned"),
    [
        ("off", "1", "rank 1: COLLECTIVES_NCCL is off", False),
        ("absent", "1", "rank 1: there is no libnccl here", False),
        ("driver", "0", "rank 0: there is no driver of CUDA", False),
        ("shared", "01", "ranks 0 and 1 share a GPU, which NCCL 2.30", False),
        ("version", "1", "rank 1 has NCCL 2.27.7, and rank 0 2.30.7", False),
        ("ours", "01", "is this package's own, which calls what we call", False),
        ("id", "0", "rank 0: no id", True),
        ("init", "1", "rank 1: no communicator", True),
        ("device", "1", "GPU 0, and CUDA's current one is 7", True),
        ("trial", "1", "it could not make a call on some rank", True),
    ],
)
def test_where_a_step_fails_all_go_on_without(
    step: str, ranks: str, why: str, warned: bool, tmp_path: Path
) -> None:
    for told in found("failing", tmp_path, step, ranks):
        assert told["wrong"] == []
        assert told["choice"] == "ours"
        assert why in told["why"]
        assert why in told["wanted"]
        assert len(told["said"]) == warned, told["said"]
        assert all("arrays on GPUs go without NCCL" in text for text in told["said"])


def test_ranks_may_share_a_gpu_where_nccl_takes_it(tmp_path: Path) -> None:
    for told in found("sharing", tmp_path):
        assert told == {"wrong": [], "way": "nccl", "blocks": [32]}


def test_where_there_is_no_memory_for_a_trial_ours_runs(tmp_path: Path) -> None:
    for told in found("failing", tmp_path, "memory", "1"):
        assert told["wrong"] == []
        assert (told["choice"], told["said"], told["wanted"]) == ("ours", [], "not refused")
        assert told["why"] == "there was no memory on the GPU to measure with, on some rank"


def test_a_wish_that_cannot_be_is_told_of(tmp_path: Path) -> None:
    wish = {"COLLECTIVES_ALGORITHM": "allreduce:nccl"}
    for told in found("failing", tmp_path, "absent", "1", **wish):
        assert told["wrong"] == []
        assert len(told["said"]) == 1
        assert "rank 1: there is no libnccl here" in told["said"][0]


@pytest.mark.parametrize("algorithm", ["nccl", ""])
def test_ranks_that_call_differently_are_told_and_nobody_waits(
    algorithm: str, tmp_path: Path
) -> None:
    said = "allreduce by NCCL of 100" if algorithm else "allreduce of 100"
    for text in found("mismatch", tmp_path, algorithm):
        assert "the ranks do not make the same call" in text
        assert said in text


def test_a_call_of_nccl_that_fails_ends_the_communicator(tmp_path: Path) -> None:
    told = found("breaking", tmp_path)
    assert told[1] == ["NcclSystemError", "AbortedError"]
    assert told[0][-1] == "AbortedError"


def test_a_rank_that_does_not_come_is_told_of(tmp_path: Path) -> None:
    here, missing = found("late", tmp_path)
    assert "gave up after 0.5 s" in here[0]
    assert len(here) == len(missing) == 2
    assert "not refused" not in here + missing


def test_a_communicator_that_is_lost_leaves_nothing(tmp_path: Path) -> None:
    assert found("lost", tmp_path) == [[True, True, 0]] * P


def test_arrays_of_another_gpu_go_the_usual_way(tmp_path: Path) -> None:
    for told in found("elsewhere", tmp_path):
        assert told["wrong"] == []
        assert told["ways"] == ["nccl", "host", "nccl"]


def test_nothing_is_measured_while_a_graph_is_captured(tmp_path: Path) -> None:
    for told in found("capturing", tmp_path):
        assert told["wrong"] == []
        assert told["ways"] == ["launch", "nccl", "nccl"]
        assert "captured into a graph" in told["why"]


def test_when_time_for_trials_is_over_what_is_near_counts(tmp_path: Path) -> None:
    for told in found("over", tmp_path):
        assert told == [
            "nccl: time for trials was over; nearby nccl was faster",
            "ours: time for trials was over, and none of such calls was measured",
        ]
