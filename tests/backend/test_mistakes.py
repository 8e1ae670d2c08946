# SPDX-License-Identifier: Apache-2.0
"""Every mistake is an error on every rank, with a text that says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backend.teams import Team

pytestmark = pytest.mark.extras

MISTAKES = {
    "dtypes": ("MismatchError", "calls all_reduce of 4 float32", "4 int32"),
    "counts": ("MismatchError", "all_reduce of 5 float32", "all_reduce of 4 float32"),
    "operations": ("MismatchError", "broadcast of 4", "all_reduce of 4"),
    "reductions": ("MismatchError", "sum", "max"),
    "ddp": ("MismatchError|RuntimeError", "barrier", "all_reduce"),
    "future": ("RuntimeError", "MismatchError", "5 float32", "4 float32"),
    "in_flight": ("MismatchError", "all_reduce of 5 float32", "4 float32"),
}
REFUSED = {
    "list": ("InvalidArgumentError", "one tensor, not 2"),
    "device": ("UnsupportedError", "meta"),
    "scale": ("UnsupportedError", "PREMUL_SUM"),
    "parts": ("InvalidArgumentError", "a list of 1 tensors"),
    "no parts": ("InvalidArgumentError", "reduce_scatter: a list of 0 tensors"),
    "no room": ("InvalidArgumentError", "all_gather: a list of 0 tensors"),
    "rows": ("InvalidArgumentError", "no split"),
    "uneven": ("InvalidArgumentError", "input of shape", "or call reduce_scatter with a list"),
    "overlap": ("InvalidArgumentError", "all_reduce: tensor of shape (4,)", "pass a copy"),
    "tag": ("InvalidArgumentError", "send: tag is -1"),
    "any tag": ("InvalidArgumentError", "recv: tag is -1"),
    "timeout": ("InvalidArgumentError", "time-out is 0"),
    "no time": ("InvalidArgumentError", "time-out is 0"),
    "no time to meet": ("InvalidArgumentError", "time-out is 0"),
    "sparse broadcast": ("InvalidArgumentError", "broadcast", "sparse_coo", "to_dense"),
    "csr broadcast": ("InvalidArgumentError", "broadcast", "sparse_csr", "to_dense"),
    "sparse coalesced": ("InvalidArgumentError", "all_reduce_coalesced", "sparse_coo", "to_dense"),
    "csr sum": ("InvalidArgumentError", "all_reduce", "sparse_csr", "to_dense"),
    "sparse list": ("InvalidArgumentError", "all_gather", "sparse_coo", "to_dense"),
    "sparse gather": ("InvalidArgumentError", "gather", "sparse_coo", "to_dense"),
    "sparse parts": ("InvalidArgumentError", "scatter", "sparse_coo", "to_dense"),
    "freed": ("InvalidArgumentError", "all_reduce", "without memory of its own"),
    "freed strided": ("InvalidArgumentError", "all_reduce", "without memory of its own"),
    "freed later": ("InvalidArgumentError", "all_reduce", "without memory of its own"),
    "freed room": ("InvalidArgumentError", "all_gather", "without memory of its own"),
    "freed parts": ("InvalidArgumentError", "reduce_scatter", "without memory of its own"),
    "freed list": ("InvalidArgumentError", "all_to_all", "without memory of its own"),
    "cut list": ("InvalidArgumentError", "all_gather", "without memory of its own"),
    "freed coalesced": ("InvalidArgumentError", "coalesced", "without memory of its own"),
    "functional": ("InvalidArgumentError", "all_reduce", "without memory of its own"),
    "nested": ("InvalidArgumentError", "all_reduce", "nested tensor"),
    "nested later": ("InvalidArgumentError", "all_reduce", "nested tensor"),
    "nested broadcast": ("InvalidArgumentError", "broadcast", "nested tensor"),
    "window": ("InvalidArgumentError", "all_reduce", "share their memory"),
    "array": ("TypeError", "ndarray is no tensor"),
    "number": ("TypeError", "int is no tensor"),
    "small list": (
        "InvalidArgumentError",
        "all_gather: tensor_list[",
        "3 elements",
        "tensor has 4",
    ),
    "small output": (
        "InvalidArgumentError",
        "all_gather_into_tensor: output_tensor has",
        "but input_tensor of",
    ),
    "another dtype": ("InvalidArgumentError", "output_tensor has dtype", "but input_tensor has"),
    "small parts": ("InvalidArgumentError", "scatter: scatter_list[0] has 3", "where tensor has 4"),
    "small sums": ("InvalidArgumentError", "reduce_scatter: input_list[", "where output has 4"),
    "large sum": ("InvalidArgumentError", "reduce_scatter_tensor: output has", "but input of"),
    "lists apart": (
        "MismatchError",
        "all_to_all: rank 0 expects 4",
        "(output_tensor_list[0])",
        "(input_tensor_list[0]): make the two equal.",
    ),
    "splits apart": (
        "MismatchError",
        "all_to_all_single: rank 0 expects 3",
        "(elements of output_split_sizes[0])",
        "(elements of input_split_sizes[0])",
    ),
}


def check(found: Any, error: str, *words: str) -> None:
    """Check the class of an error and what its text has."""
    assert found[0] in error.split("|"), found
    for word in words:
        assert any(one in found[1] for one in word.split("|")), (word, found)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_ranks_that_differ_are_all_told(ours: Team, mistake: str) -> None:
    for found in ours.run(f"mistakes.{mistake}"):
        check(found, *MISTAKES[mistake])


@pytest.mark.parametrize("swapped", [True, False])
def test_a_list_for_other_sizes_than_are_gathered_is_told_to_all(ours: Team, swapped: bool) -> None:
    size = len(ours.run("mistakes.closed"))
    sizes = [3, 2, *range(4, size + 2)] if swapped else list(range(3, size + 3))
    for found in ours.run("mistakes.gathered", sizes):
        check(found, "MismatchError", "gather: rank 0 gives 2 elements", "has room for 3")


def test_a_rank_that_does_not_come_is_named(ours: Team) -> None:
    for found in ours.run("mistakes.absent")[1:]:
        check(found, "CollectiveTimeoutError", "rank 0")


def test_a_time_out_that_is_set_later_counts(ours: Team) -> None:
    for found in ours.run("mistakes.limited")[1:]:
        check(found, "CollectiveTimeoutError", "rank 0", "after 2 s")


def test_a_message_that_nobody_sends_ends(ours: Team) -> None:
    for found in ours.run("mistakes.absent_from_message"):
        check(found, "CollectiveTimeoutError", "recv", "after 2 s|gave up")


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_there_is_refused_and_the_group_works_on(ours: Team, what: str) -> None:
    for found in ours.run("mistakes.refused", what):
        check(found, *REFUSED[what])


def test_a_closed_group_says_so(ours: Team) -> None:
    for found in ours.run("mistakes.closed"):
        check(found, "ClosedError", "shut down")
    for found in ours.run("mistakes.closed_before_a_collective"):
        check(found, "ClosedError", "all_reduce: the process group was shut down: make a new one")


def test_abort_ends_the_calls_of_all(ours: Team) -> None:
    for found in ours.run("mistakes.aborted"):
        check(found, "AbortedError", "aborted its torch process group")


def test_no_tensor_goes_another_way(ours: Team) -> None:
    for found in ours.run("mistakes.leaks"):
        check(found, "RuntimeError", "Could not retrieve or create the backend")
