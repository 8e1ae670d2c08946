# SPDX-License-Identifier: Apache-2.0
"""Hosts whose ranks exchange data by UCX over TCP: what is right, and who is told of faults."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from tests.hosts import Hosts, faults
from tests.hosts.jobs import Job, jobs
from tests.hosts.test_wire_faults import SOON, all_told

pytestmark = pytest.mark.hosts

P, VICTIM = 4, 2
UCX = {"COLLECTIVES_TRANSPORT": "ucx", "UCX_TLS": "tcp"}


def ready(job: Job) -> None:
    """Skip where there is no UCX."""
    try:
        assert job.found("failing.meets") == [None] * job.n
    except AssertionError as error:
        if "UnsupportedError" not in str(error):
            raise
        pytest.skip("there is no UCX: scripts/ucx.sh installs it")


@pytest.fixture(scope="module")
def both(possible: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hosts, Job]]:
    """Four hosts, with a rank on each."""
    with jobs(P, tmp_path_factory.mktemp("job"), settings=UCX) as made:
        ready(made[1])
        yield made


@pytest.fixture
def hosts(both: tuple[Hosts, Job]) -> Hosts:
    """Four hosts."""
    return both[0]


@pytest.fixture
def job(both: tuple[Hosts, Job]) -> Job:
    """A rank on each."""
    return both[1]


def test_every_collective_in_every_way(job: Job) -> None:
    for rank, checks in enumerate(job.found("values.everything")):
        for check, wrong in checks.items():
            assert wrong == [], f"rank {rank}, {check}"


def test_hosts_with_several_ranks(possible: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = UCX | {"UCX_TLS": "tcp,posix,cma"}
    with jobs(2, tmp_path_factory.mktemp("job"), 2, settings) as (_, job):
        ready(job)
        for rank, checks in enumerate(job.found("values.everything")):
            for check, wrong in checks.items():
                assert wrong == [], f"rank {rank}, {check}"


@pytest.mark.parametrize("algorithm", [None, "chain"])
def test_a_killed_rank_is_named_to_all(job: Job, algorithm: str | None) -> None:
    with job.running("failing.busy", algorithm) as run:
        run.reached("met")
        time.sleep(0.3)
        when = run.signal(VICTIM, signal.SIGKILL)
        all_told(run.results(VICTIM), "PeerLostError", VICTIM, when, f"rank {VICTIM} on host2")


@pytest.mark.parametrize("way", ["exit", "close"])
def test_a_rank_that_leaves_is_named_to_all(job: Job, way: str) -> None:
    with job.running("failing.leaves", VICTIM, way) as run:
        when = run.read(VICTIM, "gone")
        all_told(run.results(VICTIM), "PeerLostError", VICTIM, when, f"rank {VICTIM} on host2")
        if way == "close":
            run.signal(VICTIM, signal.SIGKILL)


def test_ranks_may_close_while_others_are_in_the_last_call(job: Job) -> None:
    assert job.found("failing.last_call_then_leave") == [{"right": True}] * P


def test_what_a_rank_sent_before_it_closed_crawls_on(hosts: Hosts, job: Job) -> None:
    with job.running("failing.last_call_then_leave", 1 << 17) as run, faults.slow(hosts[1], 4):
        assert run.results() == [{"right": True}] * P


def test_ctrl_c_ends_a_call_whose_bytes_crawl(hosts: Hosts, job: Job) -> None:
    with job.running("failing.busy", "ring") as run, faults.slow(hosts[VICTIM]):
        run.reached("met")
        time.sleep(0.3)
        when = run.signal(VICTIM, signal.SIGINT)
        told = run.read(VICTIM)
        assert told["error"] == "KeyboardInterrupt"
        assert told["time"] - when < SOON
        all_told(run.results(VICTIM), "AbortedError", VICTIM, when)


def test_a_host_that_vanishes_is_named_at_the_time_out(hosts: Hosts, job: Job) -> None:
    with job.running("failing.busy", "ring", 2.0) as run:
        run.reached("met")
        with faults.cut(hosts[VICTIM]):
            when = time.monotonic()
            all_told(run.results(VICTIM), "CollectiveTimeoutError", VICTIM, when, within=3 + SOON)
            assert run.read(VICTIM)["error"] == "CollectiveTimeoutError"


def test_every_rank_is_told_both_calls(job: Job) -> None:
    for told in job.found("failing.disagree", "count plus one"):
        assert told["error"] == "MismatchError", told
