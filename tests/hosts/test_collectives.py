# SPDX-License-Identifier: Apache-2.0
"""Collectives between hosts give what NumPy gives, in every way to call them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.jobs import Job, jobs

pytestmark = pytest.mark.hosts


@pytest.fixture(
    scope="module",
    params=[(2, 1), (3, 1), (4, 1), (2, 2)],
    ids=lambda shape: f"{shape[0]} hosts, {shape[1]} each",
)
def job(
    request: pytest.FixtureRequest, possible: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Job]:
    """Ranks on so many hosts, so many on each."""
    hosts, per = request.param
    with jobs(hosts, tmp_path_factory.mktemp("job"), per) as (_, made):
        yield made


def test_every_collective_in_every_way(job: Job) -> None:
    for rank, checks in enumerate(job.found("values.everything")):
        for check, wrong in checks.items():
            assert wrong == [], f"rank {rank}, {check}"


@pytest.mark.parametrize(
    "program",
    [
        "algorithms",
        "packed",
        "reproducible",
        "groups",
        "messages",
        "persistent",
        "by_model",
        "unsupported",
    ],
)
def test_whatever_else_there_is_on_one_machine(job: Job, program: str) -> None:
    assert job.found(f"values.{program}") == [[]] * job.n
