# SPDX-License-Identifier: Apache-2.0
"""Shares, ratios and bytes of blocks between hosts, and what voids them."""

from __future__ import annotations

import json

import pytest

from bench.hosts.records import Block, Record, Spread, bound, payload
from bench.peers.cells import Cell
from bench.peers.libraries import TeamName

OURS, GLOO, MPICH = (
    TeamName.read(text) for text in ("ours/ordinary", "gloo/torch", "mpich/single")
)
MIB = 1 << 20
CELL = Cell("allreduce", "float32", 4, MIB)
LEAST = 4 * 1.5 * MIB  # bytes of a call on all links


def block(share: float, traffic: float = 1.01) -> Block:
    return Block(bound(CELL, 1000) / share, 10, round(10 * LEAST * traffic))


def record(*rounds: dict[TeamName, Block]) -> Record:
    made = Record(CELL, 1000)
    for turn, blocks in enumerate(rounds):
        for team, one in blocks.items():
            made.add(team, turn, one, 0)
    return made


@pytest.mark.parametrize(
    ("kind", "expected"), [("allreduce", 1.5), ("reduce_scatter", 0.75), ("allgather", 0.75)]
)
def test_the_lower_bound_is_that_of_the_collective(kind: str, expected: float) -> None:
    cell = Cell(kind, "float32", 4, MIB)
    assert payload(cell) == expected * MIB
    assert bound(cell, 1000) == pytest.approx(expected * MIB * 8e-9)
    assert bound(cell, 500) == pytest.approx(2 * bound(cell, 1000))


def test_a_spread_is_median_and_extremes() -> None:
    assert Spread.of([3, 1, 2, 9]) == Spread(2.5, 1, 9, 4)
    assert Spread.of([]) is None


def test_share_and_bytes_of_blocks() -> None:
    made = record({OURS: block(0.90)}, {OURS: block(0.94, 1.05)}, {OURS: block(0.80)})
    share, traffic = made.share(OURS), made.traffic(OURS)
    assert share is not None
    assert traffic is not None
    assert (share.median, share.low, share.high) == pytest.approx((0.90, 0.80, 0.94))
    assert (traffic.median, traffic.high) == pytest.approx((1.01, 1.05))


def test_the_ratio_is_to_the_best_peer_of_the_same_round() -> None:
    made = record(
        {OURS: block(0.9), GLOO: block(0.45), MPICH: block(0.3)},
        {OURS: block(0.8), GLOO: block(0.2), MPICH: block(0.4)},
        {OURS: block(0.9)},
    )
    ratio = made.ratio()
    assert ratio is not None
    assert ratio.count == 2
    assert (ratio.low, ratio.high) == pytest.approx((2, 2))
    assert record({OURS: block(0.9)}).ratio() is None


@pytest.mark.parametrize("team", [OURS, GLOO])
def test_more_than_a_link_carries_voids_the_round_for_all(team: TeamName) -> None:
    good = {OURS: block(0.9), GLOO: block(0.9)}
    made = record(good, good | {team: block(0.96)})
    assert list(made.voided()) == [1]
    assert f"{team} at 0.960" in made.voided()[1]
    share, ratio = made.share(OURS), made.ratio()
    assert share is not None
    assert ratio is not None
    assert share.count == ratio.count == 1
    assert made.void() is None


def test_fewer_bytes_than_the_bound_void_ours() -> None:
    made = record({OURS: block(0.9)}, {OURS: block(0.9, 0.99)})
    assert made.astray() == [OURS]
    assert "allreduce" in str(made.void())


def test_a_peer_that_takes_another_way_is_no_rival() -> None:
    made = record({OURS: block(0.9), GLOO: block(0.45), MPICH: block(0.95, 0.1)})
    ratio = made.ratio()
    assert ratio is not None
    assert ratio.median == pytest.approx(2)
    assert made.astray() == [MPICH]
    assert made.void() is None


def test_a_record_is_written_with_its_blocks() -> None:
    made = record({OURS: block(0.9), GLOO: block(0.45)})
    made.add(OURS, 1, block(0.97), 3)
    found = json.loads(json.dumps(made.json()))
    assert found["wrong"] == {"ours/ordinary": 3}
    assert list(found["void_rounds"]) == ["1"]
    assert [one["round"] for one in found["teams"]["ours/ordinary"]["blocks"]] == [0, 1]
    assert found["teams"]["ours/ordinary"]["share"]["count"] == 1
    assert found["best_peer_over_ours"]["median"] == pytest.approx(2)
