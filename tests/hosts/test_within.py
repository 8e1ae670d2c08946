# SPDX-License-Identifier: Apache-2.0
"""Groups of the ranks of one host, in a job on several: they share its memory, or none of them."""

from __future__ import annotations

import signal

import pytest

from tests.hosts.jobs import Job

pytestmark = pytest.mark.hosts
SOON = 1.0  # seconds


def test_groups_within_a_host_share_its_memory(job_of_pairs: Job) -> None:
    assert job_of_pairs.found("within.shares") == [[]] * job_of_pairs.n


def test_a_killed_rank_is_named_at_once(job_of_pairs: Job) -> None:
    victim = job_of_pairs.n - 1
    with job_of_pairs.running("within.loses_a_rank") as run:
        run.reached("met")
        when = run.signal(victim, signal.SIGKILL)
        *others, beside = run.results(victim)
    assert [one["error"] for one in others] == [None] * len(others)
    assert (beside["error"], beside["rank"]) == ("PeerLostError", 1)
    assert "rank 3 of the world" in beside["text"]
    assert beside["time"] - when < SOON
    assert beside["left"] == 1


@pytest.mark.parametrize("stranger", [0, 1])
def test_where_one_rank_cannot_all_go_by_messages(job_of_pairs: Job, stranger: int) -> None:
    assert job_of_pairs.found("within.refuses", stranger) == [[]] * job_of_pairs.n
