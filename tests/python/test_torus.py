# SPDX-License-Identifier: Apache-2.0
"""Torus algorithms: products whose levels are the sides of a grid."""

from __future__ import annotations

import math
from itertools import product as every
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives._ffi import check, ffi, lib
from tests.python.ranks import on_ranks

SHAPES = [(1,), (5,), (2, 3), (3, 5), (4, 4), (8, 4), (1, 4), (2, 3, 2)]
PARTED = ("reduce_scatter", "allgather")


def sent(name: str, p: int, kind: str = "allreduce") -> list[tuple[int, int, int, int]]:
    """Return every message: round, sender, receiver and cells."""
    shown = cl.schedule(name, p, kind)
    return [
        (step.round, rank, peer, sum(segment.cells for segment in step.source))
        for rank, steps in enumerate(shown.ranks)
        for step in steps
        if step.op == "send"
        for peer in step.peers
    ]


def linked(one: int, other: int, sides: tuple[int, ...]) -> bool:
    """Whether two ranks are neighbours on a torus."""
    a, b = np.unravel_index(one, sides), np.unravel_index(other, sides)
    apart = [min((x - y) % n, (y - x) % n) for x, y, n in zip(a, b, sides, strict=True)]
    return sum(apart) == 1


@pytest.mark.parametrize("sides", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["allreduce", *PARTED])
def test_it_is_proved_and_uses_the_links_of_a_torus(kind: str, sides: tuple[int, ...]) -> None:
    p, ways = math.prod(sides), 2 if kind == "allreduce" else 1
    cl.torus(*sides, kind=kind)
    for proof in cl.verify("torus", p, kind):
        assert proof.message == ""
        assert proof.rounds == ways * sum(side - 1 for side in sides)
        assert proof.bytes == pytest.approx(ways * (p - 1) / p)
        assert proof.same_tree_on_ranks or kind == "reduce_scatter"
    assert all(linked(one, other, sides) for _, one, other, _ in sent("torus", p, kind))


def test_rows_and_columns_are_busy_at_the_same_time() -> None:
    def lines(both_ways: bool) -> set[tuple[int, ...]]:
        cl.torus(4, 4, both_ways=both_ways)
        busy = [{0: 0, 1: 0} for _ in range(12)]
        for turn, one, other, cells in sent("torus", 16):
            busy[turn][int(one // 4 == other // 4)] += cells
        return {tuple(sorted(cells.values())) for cells in busy}

    assert all(fewer == more for fewer, more in lines(both_ways=True))
    assert all(fewer == 0 < more for fewer, more in lines(both_ways=False))


def test_on_a_simulated_torus_it_is_quicker_than_one_way_and_one_ring() -> None:
    def seconds(name: str) -> float:
        return cl.simulate(name, "torus:4x4", 2**24).seconds

    cl.torus(4, 4)
    cl.torus(4, 4, both_ways=False, name="one_way")
    assert seconds("torus") < 0.9 * seconds("one_way") < 0.9 * seconds("ring")


def test_ranks_are_numbered_along_the_last_side_first() -> None:
    made = cl.torus(2, 3, name="grid")
    assert made.groupings == ((0, 0, 0, 1, 1, 1),)
    assert made.summary == (
        "6 ranks in 2 groups: ring, then ring, and the other way for half of the vector."
    )
    assert "Jain & Sabharwal" in made.paper
    assert cl.torus(2, 3, 2).groupings == cl.product("allreduce", [
        [[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]],
    ]).groupings  # fmt: skip
    assert cl.torus(3, 4, phases=("direct", "halving")).phases == ("halving", "direct")
    assert not cl.torus(3, 4, kind="allgather").both_ways
    assert not cl.torus(6).both_ways


def test_results() -> None:
    for kind in ("allreduce", *PARTED):
        cl.torus(2, 3, kind=kind)
    cl.torus(3, 2, phases=("ring", "direct"), name="mixed")
    for kind in ("broadcast", "reduce", "barrier"):
        cl.torus(2, 3, kind=kind, phases="binomial")

    def run(comm: cl.Communicator) -> None:
        for n, name in every((0, 1, 11, 12, 13, 20_000), ("torus", "mixed")):
            x = np.arange(n) * 10 + comm.rank
            total = comm.allreduce(x, algorithm=name)
            np.testing.assert_array_equal(total, 60 * np.arange(n) + 15)
        part = comm.reduce_scatter(np.repeat(np.arange(6), 7) + comm.rank, algorithm="torus")
        np.testing.assert_array_equal(part, np.full(7, 6 * comm.rank + 15))
        whole = comm.allgather(np.full(3, comm.rank), algorithm="torus")
        np.testing.assert_array_equal(whole, np.repeat(np.arange(6), 3))
        x = np.full(3, comm.rank)
        comm.broadcast(x, 4, algorithm="torus")
        assert x.tolist() == [4] * 3
        comm.barrier(algorithm="torus")

    on_ranks(6, run)


@pytest.mark.parametrize("sides", [(), (0, 3), (2, -1), (2.0, 3), ("2", 3), (True, 2)], ids=str)
def test_sides_that_make_no_sense(sides: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=r"torus: the sides are .* such as 4, 8"):
        cl.torus(*sides)


def test_what_cannot_be_is_refused() -> None:
    refused = cl.InvalidArgumentError
    with pytest.raises(refused, match="only an allreduce goes both ways"):
        cl.torus(2, 3, kind="reduce_scatter", both_ways=True)
    with pytest.raises(refused, match="does not suit"):
        cl.torus(2, 3, kind="broadcast")
    with pytest.raises(cl.UnsupportedError, match=r"halving at level 0.*3 members"):
        cl.torus(2, 3, phases="halving")
    with pytest.raises(refused, match="give 2 words"):
        cl.torus(2, 3, phases=["ring"])
    with pytest.raises(refused, match="far_first and both_ways are given"):
        cl.product("allreduce", [[0, 1], [2, 3]], far_first=True, both_ways=True)
    with pytest.raises(cl.UnsupportedError, match="unequal sizes"):
        cl.product("allreduce", [[0, 1, 2], [3]], both_ways=True)
    with pytest.raises(refused, match="a schedule is for 1 to 4096 ranks"):
        cl.torus(65, 64)


@pytest.mark.parametrize("order", [-1, 3])
def test_an_order_that_is_unknown(order: int) -> None:
    request, _alive = cl.torus(2, 2)._asked(0)
    request.far_first = order
    with pytest.raises(cl.InvalidArgumentError, match=f"far_first is {order}: give 0, 1 or 2"):
        check(lib.coll_product_prove(request, False, ffi.new("coll_proof *")))
