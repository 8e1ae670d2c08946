# SPDX-License-Identifier: Apache-2.0
"""NCCL within hosts and ours between them, on two hosts of two ranks with a GPU each."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.hosts.jobs import Job, jobs
from tests.processes.jobs import emulated_gpu

pytestmark = pytest.mark.hosts
SOON = 1.0  # seconds


@pytest.fixture(scope="module")
def job(possible: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Two ranks on each of two hosts."""
    with jobs(2, tmp_path_factory.mktemp("job"), 2) as (_, made):
        yield made


def test_the_hosts_are_told_apart_and_all_is_right(job: Job) -> None:
    for rank, told in enumerate(job.found("mixed.sums_and_moves", str(emulated_gpu()))):
        assert told["wrong"] == []
        assert told["way"] == "mixed"
        assert told["column"] == [2, "tcp", [rank // 2 * 2, rank // 2 * 2 + 1]]


def test_ranks_in_turns_have_sums_only(job: Job) -> None:
    for told in job.found("mixed.in_turns", str(emulated_gpu())):
        assert told["wrong"] == []
        assert "the ranks are not numbered host by host" in told["said"]


def test_a_killed_rank_is_told_of_at_once(job: Job) -> None:
    victim = job.n - 1
    with job.running("mixed.loses_a_rank", str(emulated_gpu())) as run:
        run.reached("met")
        when = run.signal(victim, signal.SIGKILL)
        for told in run.results(victim):
            assert told["wrong"] == []
            assert told["error"] in ("PeerLostError", "AbortedError"), told
            assert told["time"] - when < SOON
