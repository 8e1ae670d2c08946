# SPDX-License-Identifier: Apache-2.0
"""NCCL within hosts and ours between them as a candidate, among processes: right, chosen, ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.processes.jobs import found_on_gpus

pytestmark = pytest.mark.processes
P = 4


def found(program: str, folder: Path, *arguments: str, p: int = P, **variables: str) -> list[Any]:
    return found_on_gpus(p, f"nccl_mixed.{program}", folder, *arguments, **variables)


def test_all_collectives_are_right(tmp_path: Path) -> None:
    for told in found("everything", tmp_path):
        assert told == {"wrong": [], "ways": ["mixed"]}


def test_the_fastest_of_three_is_chosen(tmp_path: Path) -> None:
    for told in found("chosen", tmp_path):
        assert told["wrong"] == []
        assert told["ways"] == ["mixed", "mixed", "nccl"]
        assert told["text"] == (
            "allreduce of 4000 bytes of float32 on GPUs among 4 ranks: mixed\n  mixed was faster\n"
            "  ours 3e+03 us, nccl 2e+03 us, mixed 1e+03 us: medians of 15 rounds at 4000 bytes"
        )
        assert told["last"] == (
            "allreduce of 24 bytes by NCCL within hosts and ours between them, which is not timed"
        )


def test_hosts_may_have_other_versions_of_nccl(tmp_path: Path) -> None:
    for told in found("two_versions", tmp_path):
        assert told["wrong"] == []
        assert told["way"] == "mixed"
        assert "rank 2 has NCCL 2.27.7, and rank 0 2.30.7" in told["nccl"]
        assert "ours 2e+03 us, mixed 1e+03 us" in told["text"]


@pytest.mark.parametrize(
    ("layout", "allreduce", "allgather"),
    [
        ("0000", "all ranks are on one host", "all ranks are on one host"),
        ("001", "not refused", "the hosts have different numbers of ranks"),
        ("01", "each host has one rank alone", "each host has one rank alone"),
        ("0101", "not refused", "the ranks are not numbered host by host"),
    ],
)
def test_where_there_are_no_two_levels_it_says_so(
    layout: str, allreduce: str, allgather: str, tmp_path: Path
) -> None:
    for told in found("flat", tmp_path, layout, p=len(layout)):
        assert len(told) == 3, told
        assert allreduce in told[0]
        assert allgather in told[1]
        assert "alltoall: algorithm 'mixed' is unknown" in told[2]


@pytest.mark.parametrize("layout", ["001", "00011", "01022"])
def test_hosts_may_have_different_numbers_of_ranks(layout: str, tmp_path: Path) -> None:
    for told in found("uneven", tmp_path, layout, p=len(layout)):
        assert told == {"wrong": [], "way": "mixed"}


def test_a_graph_cannot_hold_it(tmp_path: Path) -> None:
    said = "what goes between hosts cannot be captured into a graph"
    for told in found("captured", tmp_path):
        assert told[0] in ("launch", "host")
        assert said in told[1]


def test_one_that_fails_in_the_trial_leaves_the_others(tmp_path: Path) -> None:
    for told in found("in_trial", tmp_path):
        assert told["wrong"] == []
        assert told["ways"] == ["nccl"]
        assert told["said"] == [
            "arrays on GPUs go without NCCL within hosts: it could not make a call on some rank"
        ]
        assert "it could not make a call on some rank" in told["wanted"]


def test_where_columns_cannot_be_formed_it_goes_on_without(tmp_path: Path) -> None:
    for told in found("no_columns", tmp_path):
        assert told["wrong"] == []
        assert (told["way"], told["left"]) == ("nccl", False)
        assert len(told["said"]) == 1
        assert "ranks of several hosts cannot form a group: there is no memory" in told["said"][0]


@pytest.mark.parametrize("function", ["ncclReduceScatter", "ncclAllGather"])
def test_a_stage_that_fails_ends_the_communicator(function: str, tmp_path: Path) -> None:
    told = found("breaking", tmp_path, function)
    for one in told:
        assert one["wrong"] == []
        assert one["said"][1] in ("AbortedError", "ClosedError"), one
        assert one["seconds"] < 10
    assert told[3]["said"][0] == "NcclSystemError"


def test_it_is_wished_for_by_a_variable(tmp_path: Path) -> None:
    for told in found("by_variable", tmp_path, COLLECTIVES_ALGORITHM="allreduce:mixed"):
        assert told[0] == "mixed"
        assert told[1].endswith("mixed\n  wished for by COLLECTIVES_ALGORITHM")


def test_a_communicator_that_is_lost_leaves_nothing(tmp_path: Path) -> None:
    assert found("lost", tmp_path) == [[True, False, 0]] * P
