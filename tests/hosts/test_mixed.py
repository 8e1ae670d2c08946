# SPDX-License-Identifier: Apache-2.0
"""NCCL within hosts and ours between them, on two hosts of two ranks with a GPU each."""

from __future__ import annotations

import signal

import pytest

from tests.hosts.jobs import Job
from tests.processes.jobs import emulated_gpu

pytestmark = pytest.mark.hosts
SOON = 1.0  # seconds


def test_the_hosts_are_told_apart_and_all_is_right(job_of_pairs: Job) -> None:
    for rank, told in enumerate(job_of_pairs.found("mixed.sums_and_moves", str(emulated_gpu()))):
        assert told["wrong"] == []
        assert told["way"] == "mixed"
        assert told["column"] == [2, "tcp", [rank // 2 * 2, rank // 2 * 2 + 1]]


def test_ranks_in_turns_have_sums_only(job_of_pairs: Job) -> None:
    for told in job_of_pairs.found("mixed.in_turns", str(emulated_gpu())):
        assert told["wrong"] == []
        assert "the ranks are not numbered host by host" in told["said"]


def test_hosts_may_have_different_numbers_of_ranks(job_of_pairs: Job) -> None:
    for told in job_of_pairs.found("mixed.uneven", str(emulated_gpu())):
        assert told == {"wrong": [], "way": "mixed"}


def test_a_killed_rank_is_told_of_at_once(job_of_pairs: Job) -> None:
    victim = job_of_pairs.n - 1
    with job_of_pairs.running("mixed.loses_a_rank", str(emulated_gpu())) as run:
        run.reached("met")
        when = run.signal(victim, signal.SIGKILL)
        for told in run.results(victim):
            assert told["wrong"] == []
            assert told["error"] in ("PeerLostError", "AbortedError"), told
            assert told["time"] - when < SOON
