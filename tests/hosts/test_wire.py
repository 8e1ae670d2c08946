# SPDX-License-Identifier: Apache-2.0
"""The raw exchange counts what it sends, and its judge voids what says nothing of the link."""

from __future__ import annotations

import pytest

from bench.wire.exchange import exchange
from bench.wire.judge import TCP_LIMIT, Way
from tests.hosts import Hosts

pytestmark = pytest.mark.hosts
BLOCK = 1_000_000


def way(mbit: float, counted: int = BLOCK) -> Way:
    return Way("host0", "host1", BLOCK, counted, BLOCK, BLOCK * 8 / (mbit * 1e6))


def test_an_exchange_is_timed_and_counted_both_ways(hosts: Hosts) -> None:
    ways = exchange(hosts[0], hosts[1], BLOCK, 3)
    assert [(one.source, one.target) for one in ways] == [("host0", "host1"), ("host1", "host0")]
    for one in ways:
        assert one.payload == 4 * BLOCK
        assert one.payload < one.counted < 2 * one.payload  # what was lost is sent again
        assert one.mbit > 0


def test_a_full_link_is_judged_by_what_tcp_can_carry() -> None:
    full = way(1000 * TCP_LIMIT)
    assert full.void(1000) is None
    assert "956.4 Mbit/s, 0.956 of the link, 1.000 of what TCP can carry" in full.sentence(1000)


def test_more_than_the_link_can_carry_is_void() -> None:
    assert way(956.9).void(1000) is None
    assert "above 0.957" in str(way(957.5).void(1000))
    assert "VOID" in way(957.5).sentence(1000)


def test_fewer_bytes_on_the_link_than_payload_are_void() -> None:
    assert way(900, BLOCK - 1).void(1000) == "999999 bytes on the link, and 1000000 of payload"
