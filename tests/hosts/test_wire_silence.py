# SPDX-License-Identifier: Apache-2.0
"""A host that vanishes, or that hears but is not heard, is found out within the time of silence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.hosts import Hosts, faults
from tests.hosts.jobs import Job, jobs

pytestmark = pytest.mark.hosts

P, SILENCE = 3, 2.0
# Seconds beside that; far below the time-out of a call, 300.
SOON = 8.0
FAULTS = ("cut", "from the lower", "from the higher")


@pytest.fixture(scope="module")
def both(possible: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hosts, Job]]:
    """Three hosts, with a rank on each."""
    settings = {"COLLECTIVES_SILENCE": str(SILENCE)}
    with jobs(P, tmp_path_factory.mktemp("job"), settings=settings) as made:
        yield made


def fault(hosts: Hosts, name: str) -> AbstractContextManager[None]:
    """Of two ranks the higher one connects: either direction may be the one that is dead."""
    if name == "cut":
        return faults.cut(hosts[1])
    low, high = hosts[0], hosts[1]
    return (
        faults.one_way_drop(low, high)
        if name == "from the lower"
        else faults.one_way_drop(high, low)
    )


def check(told: list[Any], begin: float) -> None:
    """Check that ranks were told so in time."""
    for one in told:
        assert one["error"] == "PeerLostError", told
        assert one["rank"] in (0, 1), told
        assert one["time"] - begin < SILENCE + SOON, (one["time"] - begin, told)


def test_a_barrier_names_all_that_miss_it(both: tuple[Hosts, Job]) -> None:
    with both[1].running("failing.misses_a_barrier", 1.0) as run:
        told = run.read(0)
        run.say("enough")
        assert told["error"] == "CollectiveTimeoutError", told
        assert "rank 1 on host1 is silent" in told["text"], told
        assert "; rank 2 has not come to this call either" in told["text"], told


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("way", ["collective", "recv"])
def test_before_the_first_call(both: tuple[Hosts, Job], name: str, way: str) -> None:
    hosts, job = both
    with job.running("failing.first_call_after_a_word", way) as run:
        run.reached("ready")
        with fault(hosts, name):
            begin = time.monotonic()
            run.say("go on")
            told = run.results()
        check(told, begin)
        for one in told:
            assert "has had no answer from" in one["text"], told


@pytest.mark.parametrize("name", FAULTS)
def test_in_the_middle_and_the_living_go_on(both: tuple[Hosts, Job], name: str) -> None:
    hosts, job = both
    with job.running("failing.shrinks_if_it_may") as run:
        run.reached("met")
        time.sleep(0.2)
        with fault(hosts, name):
            begin = time.monotonic()
            told = run.results()
        check(told, begin)
    # What is dead may be a direction, of which the others see nothing, and either end is alive.
    if name != "cut":
        for one in told:
            assert "rank 0 on host0 and rank 1 on host1 lost each other: " in one["text"], told
    # Of two ranks with a dead direction between them the lower one stays.
    assert [one.get("size") for one in told] == [2, 1 if name == "cut" else None, 2], told
    assert [one.get("total") for one in told][::2] == [0 + 2, 0 + 2], told
    if name != "cut":
        assert "took rank 1 for lost and go on without it" in told[1]["refused"], told
