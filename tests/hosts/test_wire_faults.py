# SPDX-License-Identifier: Apache-2.0
"""One of four hosts fails: all the others are told, soon, who and how; nothing is left."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.hosts import Hosts, faults
from tests.hosts.jobs import Job, jobs
from tests.hosts.tools import call
from tests.processes.mismatches import CASES

pytestmark = pytest.mark.hosts

P, VICTIM = 4, 2
# Seconds until a death or a mismatch is known everywhere. One is promised; the machine that runs
# tests may be busy, and all time-outs here are far longer.
SOON = 5.0
MISMATCHES = (
    "kind, one way",
    "op",
    "dtype of the same size",
    "count plus one",
    "parts",
    "root",
    "root of a gather",
    "gather and scatter",
    "algorithm",
    "lengths of a group",
    "order of two calls",
)
MESSAGES = (None, "ring", "chain")  # of the last two ranks do not talk to all others


@pytest.fixture(scope="module")
def both(possible: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hosts, Job]]:
    """Four hosts, with a rank on each."""
    with jobs(P, tmp_path_factory.mktemp("job")) as made:
        yield made


@pytest.fixture
def hosts(both: tuple[Hosts, Job]) -> Hosts:
    """Four hosts."""
    return both[0]


@pytest.fixture
def job(both: tuple[Hosts, Job]) -> Job:
    """A rank on each."""
    return both[1]


@pytest.fixture(autouse=True)
def _nothing_is_left(both: tuple[Hosts, Job]) -> Iterator[None]:
    """Look for sockets of processes behind each test."""
    yield
    hosts, _ = both
    end = time.monotonic() + 3
    while left := [line for host in hosts for line in sockets(host)]:
        assert time.monotonic() < end, f"sockets are left: {left}"
        time.sleep(0.02)


def sockets(host: Any) -> list[str]:
    """Return the TCP sockets of a host that belong to a process."""
    shown = call("ip", "netns", "exec", host.namespace, "ss", "-H", "-t", "-a", "-n", "-p")
    return [line for line in shown.splitlines() if "users:" in line]


def all_told(
    told: list[Any], error: str, rank: int, when: float | None, *words: str, within: float = SOON
) -> None:
    """Check that ranks were told this, in time, and are told it again at their next call."""
    for one in told:
        assert one["error"] == error, told
        assert one["rank"] == rank, told
        assert [word for word in words if word not in one["text"]] == [], told
        if "again" in one:
            assert one["again"]["text"] == one["text"], one
        assert when is None or one["time"] - when < within, (one["time"] - when, told)


@pytest.mark.parametrize("algorithm", MESSAGES)
def test_a_killed_rank_is_named_to_all(job: Job, algorithm: str | None) -> None:
    with job.running("failing.blocked", VICTIM, algorithm) as run:
        run.reached("met")
        time.sleep(0.1)
        when = run.signal(VICTIM, signal.SIGKILL)
        all_told(run.results(VICTIM), "PeerLostError", VICTIM, when, f"rank {VICTIM} on host2")


@pytest.mark.parametrize("algorithm", MESSAGES[1:])
def test_a_rank_killed_in_the_middle_is_named_to_all(job: Job, algorithm: str | None) -> None:
    with job.running("failing.busy", algorithm) as run:
        run.reached("met")
        time.sleep(0.3)
        when = run.signal(VICTIM, signal.SIGKILL)
        all_told(run.results(VICTIM), "PeerLostError", VICTIM, when, f"rank {VICTIM} on host2")


@pytest.mark.parametrize("way", ["exit", "close", "kill"])
def test_a_rank_that_leaves_is_named_to_all(job: Job, way: str) -> None:
    with job.running("failing.leaves", VICTIM, way) as run:
        when = run.read(VICTIM, "gone")
        words = [f"rank {VICTIM} on host2"] + ["closed"] * (way == "close")
        all_told(run.results(VICTIM), "PeerLostError", VICTIM, when, *words)
        if way == "close":
            run.signal(VICTIM, signal.SIGKILL)


@pytest.mark.parametrize("victim", [0, P - 1])
def test_a_rank_that_dies_before_it_is_connected_is_named_to_all(job: Job, victim: int) -> None:
    with job.running("failing.leaves", victim, "unmet") as run:
        when = run.read(victim, "gone")
        all_told(run.results(victim), "PeerLostError", victim, when, within=3)


def test_an_exception_is_told_to_all(job: Job) -> None:
    with job.running("failing.leaves", VICTIM, "raise") as run:
        when = run.read(VICTIM, "gone")
        words = f"rank {VICTIM} aborted", "ended by ValueError: a mistake of the program"
        all_told(run.results(VICTIM), "AbortedError", VICTIM, when, *words)


def test_abort_is_told_to_all(job: Job) -> None:
    with job.running("failing.leaves", VICTIM, "abort") as run:
        when = run.read(VICTIM, "gone")
        words = f"rank {VICTIM} aborted", "no disk left"
        all_told(run.results(VICTIM), "AbortedError", VICTIM, when, *words)
        run.signal(VICTIM, signal.SIGKILL)


def test_abort_from_another_thread_ends_a_call(job: Job) -> None:
    told = job.found("failing.aborted_by_thread", VICTIM)
    all_told(told, "AbortedError", VICTIM, max(one["begin"] for one in told), "enough")


def test_close_from_another_thread_ends_a_call(job: Job) -> None:
    with job.running("failing.closed_by_thread", VICTIM) as run:
        assert run.read(VICTIM)["error"] in ("AbortedError", "ClosedError")
        run.say("go on")
        for told in run.results(VICTIM):
            assert told["error"] in ("AbortedError", "PeerLostError"), told
            assert told["rank"] == VICTIM


def test_ctrl_c_ends_a_blocked_call(job: Job) -> None:
    with job.running("failing.interrupted", VICTIM) as run:
        run.reached("met")
        time.sleep(0.3)
        when = run.signal(VICTIM, signal.SIGINT)
        told = run.read(VICTIM)
        assert told["error"] == "KeyboardInterrupt"
        assert told["time"] - when < 1.5
        run.say("go on")
        words = f"rank {VICTIM} aborted: it was interrupted in allreduce by KeyboardInterrupt"
        all_told(run.results(VICTIM), "AbortedError", VICTIM, None, words)


def test_ctrl_c_ends_a_call_whose_bytes_crawl(hosts: Hosts, job: Job) -> None:
    with job.running("failing.busy", "ring") as run, faults.slow(hosts[VICTIM]):
        run.reached("met")
        time.sleep(0.3)
        when = run.signal(VICTIM, signal.SIGINT)
        told = run.read(VICTIM)
        assert told["error"] == "KeyboardInterrupt"
        assert told["time"] - when < 1.5
        all_told(run.results(VICTIM), "AbortedError", VICTIM, when, within=3)


def test_a_rank_that_computes_is_not_taken_for_lost(job: Job) -> None:
    assert job.found("failing.late", VICTIM, 1.0) == [{"right": True}] * P


def test_ranks_may_close_while_others_are_in_the_last_call(job: Job) -> None:
    folder = job.folder / "meeting"
    before = set(folder.iterdir())
    assert job.found("failing.last_call_then_leave") == [{"right": True}] * P
    assert set(folder.iterdir()) - before == set()


def test_what_a_rank_sent_before_it_closed_crawls_on(hosts: Hosts, job: Job) -> None:
    with job.running("failing.last_call_then_leave", 1 << 17) as run, faults.slow(hosts[1], 4):
        assert run.results() == [{"right": True}] * P


def test_a_stopped_rank_goes_on(job: Job) -> None:
    with job.running("failing.counted", 100, 20_000) as run:
        run.reached("met")
        run.signal(VICTIM, signal.SIGSTOP)
        time.sleep(2)
        run.signal(VICTIM, signal.SIGCONT)
        for told in run.results():
            assert (told["error"], told["wrong"]) == (None, 0), told


def test_a_stopped_rank_is_named_at_the_time_out(job: Job) -> None:
    with job.running("failing.blocked_with_limit", VICTIM, 1.0) as run:
        run.reached("met")
        begin = time.monotonic()
        run.signal(VICTIM, signal.SIGSTOP)
        words = "gave up after 1 s", f"rank {VICTIM} on host2 is silent"
        all_told(run.results(VICTIM), "CollectiveTimeoutError", VICTIM, begin, *words, within=2)
        run.signal(VICTIM, signal.SIGKILL)


@pytest.mark.parametrize("elements", [9, 1 << 20])
@pytest.mark.parametrize("algorithm", [None, "ring"])
def test_a_rank_stopped_in_the_middle_is_named(
    job: Job, algorithm: str | None, elements: int
) -> None:
    """Some wait for a rank that waits itself, in the call before."""
    with job.running("failing.busy", algorithm, 2.0, elements) as run:
        run.reached("met")
        time.sleep(0.5)
        begin = run.signal(VICTIM, signal.SIGSTOP)
        told = run.results(VICTIM)
        run.signal(VICTIM, signal.SIGKILL)
    for one in told:
        assert (one["error"], one["rank"]) == ("CollectiveTimeoutError", VICTIM), told
        assert one["time"] - begin < 2 + SOON, told


def test_a_rank_stopped_in_a_ring_of_messages_is_named(job: Job) -> None:
    """Not the neighbour that waits itself."""
    with job.running("failing.ring_of_messages", 2.0) as run:
        run.reached("met")
        time.sleep(0.5)
        begin = run.signal(VICTIM, signal.SIGSTOP)
        told = run.results(VICTIM)
        run.signal(VICTIM, signal.SIGKILL)
    all_told(told, "CollectiveTimeoutError", VICTIM, begin, f"rank {VICTIM} on host2", within=15)


@pytest.mark.parametrize("victim", [0, P - 1])
def test_a_rank_that_does_not_come_to_the_first_call_is_named(job: Job, victim: int) -> None:
    with job.running("failing.late_to_the_first", victim, 1.0) as run:
        told = run.results(victim)
        all_told(told, "CollectiveTimeoutError", victim, None, f"rank {victim}")
        run.say("enough")
        assert run.read(victim)["error"] in ("CollectiveTimeoutError", "PeerLostError")


@pytest.mark.parametrize("fault", ["cut", "one way"])
def test_a_host_that_vanishes_is_named_at_the_time_out(hosts: Hosts, job: Job, fault: str) -> None:
    with job.running("failing.busy", "ring", 2.0) as run, ExitStack() as stack:
        run.reached("met")
        if fault == "cut":
            stack.enter_context(faults.cut(hosts[VICTIM]))
        else:
            stack.enter_context(faults.one_way_drop(hosts[VICTIM], hosts[VICTIM + 1]))
        when = time.monotonic()
        for told in run.results(VICTIM):
            assert told["error"] == "CollectiveTimeoutError", told
            assert told["time"] - when < 3 + SOON
            assert fault != "cut" or told["rank"] == VICTIM, told
        assert run.read(VICTIM)["error"] == "CollectiveTimeoutError"


def test_a_reset_is_told_to_all(hosts: Hosts, job: Job) -> None:
    with job.running("failing.busy", "ring") as run:
        run.reached("met")
        when = time.monotonic()
        assert faults.reset(hosts[VICTIM], hosts[VICTIM + 1]) > 0
        for told in run.results():
            assert told["error"] == "PeerLostError", told
            assert told["rank"] in (VICTIM, VICTIM + 1)
            assert told["time"] - when < SOON


def test_a_slow_link_is_no_fault(hosts: Hosts, job: Job) -> None:
    with job.running("failing.counted", 2, 15_000) as run, faults.slow(hosts[VICTIM]):
        for told in run.results():
            assert (told["error"], told["wrong"]) == (None, 0), told


@pytest.mark.parametrize("case", MISMATCHES)
def test_every_rank_is_told_both_calls(job: Job, case: str) -> None:
    for told in job.found("failing.disagree", case):
        assert told["error"] == "MismatchError", told
        assert [word for word in (*CASES[case][2], "rank 1 ") if word not in told["text"]] == []
        assert told["again"]["text"] == told["text"]
        assert told["seconds"] < SOON


def test_a_call_that_is_left_out_is_told(job: Job) -> None:
    for told in job.found("failing.missing"):
        assert told["error"] == "MismatchError", told
        assert "allreduce of 5" in told["text"], told
        assert "broadcast of 7" in told["text"], told
        assert told["seconds"] < SOON


@pytest.mark.parametrize("way", ["recv", "any", "send", "request"])
def test_a_message_that_a_killed_rank_owes_ends(job: Job, way: str) -> None:
    with job.running("failing.waits_for_message", VICTIM, way) as run:
        run.reached("met")
        time.sleep(0.3)
        when = run.signal(VICTIM, signal.SIGKILL)
        all_told(run.results(VICTIM), "PeerLostError", VICTIM, when, f"rank {VICTIM} on host2")


def living_go_on(found: list[Any]) -> None:
    """Check that all but the victim work together, and how soon they did."""
    for told in found:
        assert (told["size"], told["total"], told["wrong"]) == (P - 1, 0 + 1 + 3, 0), found
        assert told["took"] < 2 + 1, found  # two are promised, on a machine that is not busy
    assert [told["rank"] for told in found] == list(range(P - 1))


def test_the_living_go_on_without_a_killed_rank(job: Job) -> None:
    with job.running("failing.shrinks") as run:
        run.reached("met")
        time.sleep(0.2)
        run.signal(VICTIM, signal.SIGKILL)
        living_go_on(run.results(VICTIM))


def test_the_living_go_on_without_a_host_that_vanished(hosts: Hosts, job: Job) -> None:
    with job.running("failing.shrinks", 1.5) as run:
        run.reached("met")
        time.sleep(0.2)
        with faults.cut(hosts[VICTIM]):
            living_go_on(run.results(VICTIM))
        # What was cut off believes the same of the others.
        assert run.read(VICTIM)["size"] == 1


def test_who_only_failed_before_it_was_connected_goes_on_too(job: Job) -> None:
    with job.running("failing.shrinks_unmet", P - 1, 0.4) as run:
        found = run.results(P - 1)
        assert [told["error"] for told in found] == ["PeerLostError"] * (P - 1), found
        assert [(told["size"], told["total"]) for told in found] == [(P - 1, 0 + 1 + 2)] * (P - 1)


def test_who_only_lost_its_connections_goes_on_too(hosts: Hosts, job: Job) -> None:
    with job.running("failing.shrinks") as run:
        run.reached("met")
        time.sleep(0.2)
        assert faults.reset(hosts[VICTIM], hosts[VICTIM + 1]) > 0
        found = run.results()
        assert [told["error"] for told in found] == ["PeerLostError"] * P, found
        assert [(told["size"], told["total"]) for told in found] == [(P, 0 + 1 + 2 + 3)] * P


def strange(hosts: Hosts, address: tuple[str, int], stack: ExitStack, number: int) -> None:
    """Be a stranger at a door: of one kind after another."""
    host = hosts[number % len(hosts)]
    one = stack.enter_context(host.socket())
    one.settimeout(3)
    try:
        one.connect(address)
        words = (b"", b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 4096, bytes(range(256)) * 8, b"c")
        one.sendall(words[number % len(words)])
    except OSError:
        pass  # it was shown the door
    if number % 7 == 6:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        one.close()


def test_strangers_do_not_disturb_a_job(hosts: Hosts, job: Job) -> None:
    with job.running("failing.crowded") as run, ExitStack() as stack:
        run.reached("met")
        doors = [tuple(door) for rank in range(P) for door in run.read(rank, "doors")]
        assert len(doors) == 4 * P
        for number in range(200):
            strange(hosts, doors[number % len(doors)], stack, number)
        run.say("enough")
        for found in run.results():
            assert (found["wrong"], found["enough"]) == (0, 1), found
            assert found["calls"] > 1


def test_strangers_do_not_keep_ranks_from_meeting(hosts: Hosts, job: Job) -> None:
    with job.running("failing.first_call_among_strangers") as run, ExitStack() as stack:
        doors = [tuple(door) for rank in range(P) for door in run.read(rank, "doors")]
        for number in range(80):
            strange(hosts, doors[number % len(doors)], stack, number)
        run.say("enough")
        for told in run.results():
            assert told["error"] is None, told
