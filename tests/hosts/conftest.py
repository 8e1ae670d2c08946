# SPDX-License-Identifier: Apache-2.0
"""Hosts for the tests of a file, where the machine lets us make them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts import Hosts
from tests.hosts.jobs import Job, jobs
from tests.hosts.tools import missing


@pytest.fixture(scope="session", autouse=True)
def possible() -> None:
    """Skip, and say why, where hosts cannot be made."""
    if reason := missing():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def hosts(possible: None) -> Iterator[Hosts]:
    """Return three hosts with links as fast as the machine."""
    with Hosts(3) as made:
        yield made


@pytest.fixture(scope="module")
def job_of_pairs(possible: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """Two ranks on each of two hosts."""
    with jobs(2, tmp_path_factory.mktemp("job"), 2) as (_, made):
        yield made
