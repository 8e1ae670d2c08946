# SPDX-License-Identifier: Apache-2.0
"""Every mistake is an error on every rank, with a text that says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backend.teams import Team

pytestmark = pytest.mark.extras

MISTAKES = {
    "dtypes": ("MismatchError", "all_reduce|allreduce", "4 float32", "4 int32"),
    "counts": ("MismatchError", "allreduce of 5 float32", "allreduce of 4 float32"),
    "operations": ("MismatchError", "broadcast of 4", "allreduce of 4"),
    "reductions": ("MismatchError", "sum", "max"),
    "ddp": ("MismatchError|RuntimeError", "barrier", "allreduce"),
    "future": ("RuntimeError", "MismatchError", "5 float32", "4 float32"),
    "in_flight": ("MismatchError", "5 float32", "4 float32"),
}
REFUSED = {
    "list": ("InvalidArgumentError", "one tensor, not 2"),
    "device": ("UnsupportedError", "meta"),
    "scale": ("UnsupportedError", "PREMUL_SUM"),
    "parts": ("InvalidArgumentError", "a list of 1 tensors"),
    "no parts": ("InvalidArgumentError", "reduce_scatter: a list of 0 tensors"),
    "no room": ("InvalidArgumentError", "all_gather: a list of 0 tensors"),
    "rows": ("InvalidArgumentError", "no split"),
    "timeout": ("InvalidArgumentError", "init_process_group"),
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


def test_a_rank_that_does_not_come_is_named(ours: Team) -> None:
    for found in ours.run("mistakes.absent")[1:]:
        check(found, "CollectiveTimeoutError", "rank 0")


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


def test_abort_ends_the_calls_of_all(ours: Team) -> None:
    for found in ours.run("mistakes.aborted"):
        check(found, "AbortedError", "aborted its torch process group")


def test_no_tensor_goes_another_way(ours: Team) -> None:
    for found in ours.run("mistakes.leaks"):
        check(found, "RuntimeError", "error_on_collective|collective")
