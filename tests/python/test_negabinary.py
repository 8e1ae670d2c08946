# SPDX-License-Identifier: Apache-2.0
"""Swing, Bine and PAT are what their papers say: who talks to whom, with how much, how far.

That their results are right is proved (tests/native/prove_test.cc); these tests hold them to the
definitions, written here again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import collectives as cl

BUTTERFLIES = ("swing", "bine")
POWERS = (2, 4, 8, 16, 32, 64)


def messages(name: str, p: int, kind: str, root: int = 0) -> Iterator[tuple[int, int, int, int]]:
    """Yield every message: round, sender, receiver, and cells."""
    for rank, steps in enumerate(cl.schedule(name, p, kind, root).ranks):
        for step in steps:
            if step.op == "send":
                cells = sum(segment.cells for segment in step.source)
                for peer in step.peers:
                    yield step.round, rank, peer, cells


def hops(name: str, p: int, kind: str) -> int:
    """Return the links of a ring that all cells together pass."""
    return sum(
        cells * min((to - rank) % p, (rank - to) % p)
        for _, rank, to, cells in messages(name, p, kind)
    )


def digits(place: int) -> int:
    """Return a place in base -2, as bits."""
    bits, weight = 0, 0
    while place:
        bits |= (place & 1) << weight
        place = (place - (place & 1)) // -2
        weight += 1
    return bits


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("name", BUTTERFLIES)
@pytest.mark.parametrize("kind", ["reduce_scatter", "allgather"])
def test_partners_are_negabinary_distances_away(kind: str, name: str, p: int) -> None:
    rounds = p.bit_length() - 1
    near_first = (name == "swing") == (kind == "reduce_scatter")
    for turn, rank, to, cells in messages(name, p, kind):
        step = turn if near_first else rounds - 1 - turn
        distance = (1 - (-2) ** (step + 1)) // 3
        assert to == (rank + (distance if rank % 2 == 0 else -distance)) % p
        assert cells == (p >> (turn + 1) if kind == "reduce_scatter" else 1 << turn)


def runs(name: str, p: int, kind: str) -> int:
    """Return in how many runs of neighbouring blocks the most scattered message is, cyclically."""
    own = "input" if kind == "allgather" else "output"
    most = 0
    for rank, steps in enumerate(cl.schedule(name, p, kind).ranks):
        for step in steps:
            if step.op == "send":
                blocks = set[int]()
                for part in step.source:
                    first = rank if part.buffer == own else part.first
                    blocks.update(range(first, first + part.cells))
                most = max(most, sum((block + 1) % p not in blocks for block in blocks))
    return most


@pytest.mark.parametrize("kind", ["reduce_scatter", "allgather"])
def test_messages_of_bine_are_runs_of_neighbours(kind: str) -> None:
    assert [runs("bine", p, kind) for p in (*POWERS, 6, 10, 12, 22, 48)] == [1] * 11
    assert runs("swing", 64, kind) > 8


def test_messages_of_the_swing_allreduce_are_runs() -> None:
    def most(p: int) -> int:
        steps = (step for steps in cl.schedule("swing", p).ranks for step in steps)
        return max(len(step.source) for step in steps if step.op == "send")

    assert [most(p) for p in POWERS] == [1] * 6
    assert most(48) < 8


@pytest.mark.parametrize("name", BUTTERFLIES)
def test_the_last_of_an_odd_number_talks_to_all(name: str) -> None:
    for p in (3, 5, 7, 9, 13, 33):
        halves = list[int]()
        for turn in range(cl.schedule(name, p, "reduce_scatter").rounds):
            to = [
                to
                for t, r, to, *_ in messages(name, p, "reduce_scatter")
                if (t, r) == (turn, p - 1)
            ]
            halves.append(len(to))
        assert sum(halves) == p - 1
        assert halves == sorted(halves, reverse=True)
        assert halves[0] == (p - 1) // 2 or p == 3


@pytest.mark.parametrize("p", POWERS)
def test_the_parent_flips_the_last_digits_that_are_alike(p: int) -> None:
    rounds = p.bit_length() - 1
    lowest = -sum(2**weight for weight in range(1, rounds, 2))
    for root in (0, p // 3):
        found = {to: (turn, rank) for turn, rank, to, *_ in messages("bine", p, "broadcast", root)}
        for place in range(lowest, lowest + p):
            bits = digits(place)
            alike = 1
            while alike < rounds and (bits >> alike & 1) == (bits & 1):
                alike += 1
            if place == 0:
                assert root not in found
                continue
            turn, parent = found[(root + place) % p]
            from_root = (parent - root - lowest) % p + lowest
            assert digits(from_root) == bits ^ ((1 << alike) - 1)
            assert turn == rounds - alike


def test_the_reduce_is_the_broadcast_backwards() -> None:
    for p, root in ((1, 0), (2, 1), (7, 3), (12, 0), (16, 9)):
        down = {(turn, one, to) for turn, one, to, *_ in messages("bine", p, "broadcast", root)}
        up = {(turn, one, to) for turn, one, to, *_ in messages("bine", p, "reduce", root)}
        last = max((turn for turn, *_ in down), default=0)
        assert up == {(last - turn, to, one) for turn, one, to in down}


def test_bine_and_swing_pass_fewer_links() -> None:
    for p in (8, 16, 32, 64, 24, 31, 61):
        for kind in ("broadcast", "reduce"):
            assert hops("bine", p, kind) < hops("binomial", p, kind)
    for p in (8, 16, 32, 64):
        for kind, other in (("reduce_scatter", "recursive_halving"), ("allgather", "bruck")):
            assert hops("swing", p, kind) < hops("pat", p, kind) < hops(other, p, kind)
            assert hops("bine", p, kind) < hops(other, p, kind)
    assert hops("swing", 64, "allreduce") < hops("circulant", 64, "allreduce") / 4


@pytest.mark.parametrize(
    ("kind", "name", "other", "topology"),
    [
        ("allreduce", "swing", "circulant", "torus:64"),
        ("reduce_scatter", "swing", "recursive_halving", "torus:64"),
        ("allgather", "pat", "bruck", "fat-tree:64,oversubscription=4"),
        ("reduce_scatter", "pat", "recursive_halving", "fat-tree:64,oversubscription=4"),
        ("allgather", "bine", "bruck", "fat-tree:64,oversubscription=4"),
        ("broadcast", "bine", "binomial", "dragonfly:9x4x2"),
    ],
)
def test_simulated_where_far_links_are_few_they_are_quicker(
    kind: str, name: str, other: str, topology: str
) -> None:
    ours, theirs = (cl.simulate(one, topology, 2**24, kind=kind).seconds for one in (name, other))
    assert ours < 0.8 * theirs


@pytest.mark.parametrize("p", [2, 3, 5, 8, 12, 37, 64])
def test_pat_sends_far_what_is_small(p: int) -> None:
    rounds = (p - 1).bit_length()
    for kind in ("allgather", "reduce_scatter"):
        for turn, rank, to, cells in messages("pat", p, kind):
            reach = 1 << (rounds - 1 - turn if kind == "allgather" else turn)
            assert (to - rank if kind == "allgather" else rank - to) % p == reach
            assert cells == -(-(p - reach) // (2 * reach))
