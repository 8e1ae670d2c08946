# SPDX-License-Identifier: Apache-2.0
"""Each fault between hosts does what it says to connections that exist, and ends."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from tests.hosts import Hosts, Shape
from tests.hosts.faults import SLOW_BUCKET, cut, one_way_drop, reset, slow
from tests.hosts.pairs import BUFFER, arrives, connected, exactly, silent

pytestmark = pytest.mark.hosts


def test_a_cut_link_is_silence_until_it_is_back(hosts: Hosts) -> None:
    with connected(hosts[0], hosts[1]) as (ours, theirs):
        with cut(hosts[1]):
            ours.sendall(b"held up")
            theirs.sendall(b"this too")
            assert silent(theirs)
            assert silent(ours)
            assert not arrives(hosts[2], hosts[1])
            assert arrives(hosts[0], hosts[2])
        assert exactly(theirs, 7) == b"held up"
        assert exactly(ours, 8) == b"this too"


def test_a_cut_ends_with_an_exception(hosts: Hosts) -> None:
    with pytest.raises(KeyError), cut(hosts[1]):
        raise KeyError
    with connected(hosts[0], hosts[1]) as (ours, theirs):
        ours.sendall(b"x")
        assert exactly(theirs, 1) == b"x"


def test_a_one_way_drop_loses_one_direction_only(hosts: Hosts) -> None:
    with connected(hosts[0], hosts[1]) as (ours, theirs):
        with one_way_drop(hosts[0], hosts[1]):
            assert not arrives(hosts[0], hosts[1])
            assert arrives(hosts[1], hosts[0])
            assert arrives(hosts[0], hosts[2])
            theirs.sendall(b"heard")
            assert exactly(ours, 5) == b"heard"
            ours.sendall(b"lost")
            assert silent(theirs)
        assert exactly(theirs, 4) == b"lost"
        assert arrives(hosts[0], hosts[1])


def test_a_reset_reaches_both_ends_and_nobody_else(hosts: Hosts) -> None:
    with (
        connected(hosts[0], hosts[1]) as (ours, theirs),
        connected(hosts[0], hosts[2]) as (spared, other),
    ):
        assert reset(hosts[0], hosts[1]) == 1
        with pytest.raises(ConnectionResetError):
            theirs.recv(1)
        with pytest.raises(ConnectionAbortedError):
            ours.recv(1)
        spared.sendall(b"fine")
        assert exactly(other, 4) == b"fine"


def test_a_reset_of_nothing_is_refused(hosts: Hosts) -> None:
    with pytest.raises(RuntimeError, match="no connection between host1 and host2 was reset"):
        reset(hosts[1], hosts[2])


def test_a_link_becomes_slow_in_full_flow_and_bytes_go_on() -> None:
    data = bytes(3 << 20)
    with Hosts(2, mbit=100) as hosts, connected(hosts[0], hosts[1]) as (ours, theirs):
        before = hosts[0].shapes()
        sending = threading.Thread(target=ours.sendall, args=(data,))
        sending.start()
        came = len(exactly(theirs, 1 << 20))  # the queues are full of large packets now
        with slow(hosts[0], mbit=8):
            assert alike(hosts[0].shapes(), (Shape(8, SLOW_BUCKET),) * 2)
            with hosts[1].counted() as traffic:
                came += len(exactly(theirs, 4 * BUFFER))
            assert traffic.received_bytes > BUFFER
        assert alike(hosts[0].shapes(), before)
        assert came + len(exactly(theirs, len(data) - came)) == len(data)
        sending.join()


def test_packets_that_a_smaller_bucket_cannot_hold_do_not_stop_a_link() -> None:
    data = bytes(1 << 20)
    with Hosts(2) as hosts, connected(hosts[0], hosts[1]) as (ours, theirs):
        hosts[0].put(Shape(2, queue_ms=2000), None)
        sending = threading.Thread(target=ours.sendall, args=(data,))
        sending.start()
        came = len(exactly(theirs, 300 << 10))  # the bucket is empty, large packets queue
        hosts[0].put(Shape(100, SLOW_BUCKET), None)
        assert came + len(exactly(theirs, len(data) - came)) == len(data)
        sending.join()


def alike(found: Iterable[Shape | None], wanted: Iterable[Shape | None]) -> bool:
    """Return whether shapes are the same but for the bytes that the kernel rounds buckets by."""
    return all(
        one is not None
        and other is not None
        and (one.mbit, one.queue_ms) == (other.mbit, other.queue_ms)
        and one.bucket == pytest.approx(other.bucket, rel=0.01)
        for one, other in zip(found, wanted, strict=True)
    )


def test_slow_takes_and_leaves_a_link_without_limit(hosts: Hosts) -> None:
    assert hosts[2].shapes() == (None, None)
    with slow(hosts[2]):
        assert [shape and shape.mbit for shape in hosts[2].shapes()] == [1.0, 1.0]
    assert hosts[2].shapes() == (None, None)


def test_a_shape_can_differ_by_direction(hosts: Hosts) -> None:
    hosts[2].put(Shape(50), None)
    sent, received = hosts[2].shapes()
    assert sent is not None
    assert (sent.mbit, received) == (50, None)
    hosts[2].put(None, None)
