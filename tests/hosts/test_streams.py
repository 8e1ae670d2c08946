# SPDX-License-Identifier: Apache-2.0
"""Several TCP streams for a pair of ranks: the same bits, and the same words when one dies."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.hosts.jobs import Job, jobs
from tests.hosts.test_by_hand import ended, start

pytestmark = pytest.mark.hosts

NAME = "COLLECTIVES_STREAMS"
VICTIM = 1


@pytest.fixture(scope="module")
def job(possible: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Two hosts with two ranks each, and three streams between those of two hosts."""
    with jobs(2, tmp_path_factory.mktemp("job"), 2, {NAME: "3"}) as (_, made):
        yield made


def test_every_collective_in_every_way(job: Job) -> None:
    for rank, checks in enumerate(job.found("values.everything")):
        for check, wrong in checks.items():
            assert wrong == [], f"rank {rank}, {check}"


@pytest.mark.parametrize("program", ["algorithms", "reproducible", "groups", "messages"])
def test_whatever_else_there_is(job: Job, program: str) -> None:
    assert job.found(f"values.{program}") == [[]] * job.n


@pytest.mark.parametrize("n", [2, 3])
def test_results_have_the_same_bits_with_any_number(n: int, possible: None, tmp_path: Path) -> None:
    found = []
    for number in (1, 2, 4):
        with jobs(n, tmp_path / str(number), settings={NAME: str(number)}) as (_, job):
            found.append(job.found("streams.digests"))
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_a_killed_rank_is_named_and_the_others_go_on(possible: None, tmp_path: Path) -> None:
    with (
        jobs(3, tmp_path, settings={NAME: "4"}) as (_, job),
        job.running("streams.until_lost") as run,
    ):
        run.reached("met")
        time.sleep(0.3)
        run.signal(VICTIM, signal.SIGKILL)
        for told in run.results(VICTIM):
            assert told["error"] == "PeerLostError", told
            assert f"rank {VICTIM} on host{VICTIM} is lost" in told["text"], told
            assert (told["size"], told["wrong"]) == (2, 0), told


def test_what_was_sent_before_a_rank_closed_counts(possible: None, tmp_path: Path) -> None:
    with jobs(3, tmp_path, settings={NAME: "4"}) as (_, job):
        assert job.found("failing.last_call_then_leave") == [{"right": True}] * 3


def test_ranks_that_differ_are_named_to_both(hosts: Hosts, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("5a" * 32 + "\n")
    secret.chmod(0o600)
    env = {"COLLECTIVES_SECRET_FILE": str(secret)}
    ranks = [start(hosts, rank, env=env | {NAME: str(2 + rank)}) for rank in range(2)]
    complaints = [complaint for code, _, complaint in ended(*ranks) if code != 0]
    assert len(complaints) == 2
    for complaint in complaints:
        assert f"rank 0 has {NAME} 2 and rank 1 has 3" in complaint, complaint


def test_what_is_no_number_is_refused(hosts: Hosts, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("5a" * 32 + "\n")
    secret.chmod(0o600)
    env = {"COLLECTIVES_SECRET_FILE": str(secret), NAME: "many"}
    for code, _, complaint in ended(*(start(hosts, rank, env=env) for rank in range(2))):
        assert code != 0
        assert f"{NAME}='many' is not an integer from 1 to 16" in complaint
