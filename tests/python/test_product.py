# SPDX-License-Identifier: Apache-2.0
"""Hierarchical algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

SHAPES = {
    "2x2": [[0, 1], [2, 3]],
    "3+1": [[0, 1, 2], [3]],
    "ranks apart": [[3, 0], [1, 2]],
    "sockets": [[[0, 1], [2]], [[3]]],
    "flat": range(4),
}
TEAMS = ("allreduce", "reduce_scatter", "allgather")
LEADERS = ("broadcast", "reduce", "barrier")


def every_collective(comm: cl.Communicator) -> None:
    p, rank = comm.size, comm.rank
    for n in (0, 1, 7, 30_000):
        whole = p * np.arange(n) + p * (p - 1) // 2
        given = np.arange(n, dtype=np.int64) + rank
        np.testing.assert_array_equal(comm.allreduce(given.copy(), algorithm="product"), whole)
        parts = np.repeat(np.arange(p), n) + rank
        part = comm.reduce_scatter(parts, algorithm="product")
        np.testing.assert_array_equal(part, np.full(n, p * rank + p * (p - 1) // 2))
        gathered = comm.allgather(np.full(n, rank), algorithm="product")
        np.testing.assert_array_equal(gathered, np.repeat(np.arange(p), n))
        comm.barrier(algorithm="product")
        for root in range(p):
            x = np.full(n, rank)
            comm.broadcast(x, root, algorithm="product")
            np.testing.assert_array_equal(x, np.full(n, root))
            total = comm.reduce(given.copy(), root=root, algorithm="product")
            if rank == root:
                np.testing.assert_array_equal(total, whole)


@pytest.mark.parametrize("levels", SHAPES.values(), ids=SHAPES)
def test_it_runs_like_a_built_in_one(levels: Any) -> None:
    for kind in (*TEAMS, *LEADERS):
        cl.product(kind, levels)
    on_ranks(4, every_collective)


@pytest.mark.parametrize("phases", ["ring", "circulant", ("halving", "ring"), ("direct", "direct")])
def test_phases(phases: Any) -> None:
    cl.product("allreduce", [[0, 1], [2, 3]], phases)
    cl.product("reduce_scatter", [[0, 2], [1, 3]], phases, far_first=True)

    def run(comm: cl.Communicator) -> None:
        x = np.full(1001, 2.0**comm.rank)
        assert set(comm.allreduce(x, algorithm="product").tolist()) == {15.0}
        x = np.repeat(np.arange(4.0), 5) * 2.0**comm.rank
        part = comm.reduce_scatter(x, algorithm="product")
        assert part.tolist() == [15.0 * comm.rank] * 5

    on_ranks(4, run)


def test_it_is_proved_listed_and_drawn() -> None:
    made = cl.product("allreduce", [[0, 1, 2], [3]], ("direct", "ring"), name="hosts")
    (one, other) = cl.verify("hosts", 4)
    assert [one.proved, other.proved, other.in_place, one.same_tree_on_ranks] == [True] * 4
    assert one.rounds == 4
    assert [proof.p for proof in cl.verify("hosts", range(1, 9))] == [4, 4]
    (entry,) = [a for a in cl.algorithms("allreduce") if a.name == "hosts"]
    assert entry.restriction == "p = 4"
    assert "BlueConnect" in entry.paper
    assert entry.summary == made.summary == "4 ranks in 2 groups: direct, then ring."
    assert [entry.fits(p) for p in (3, 4, 5)] == [False, True, False]
    assert "<svg" in cl.draw("hosts", 4)
    assert "round 3" in cl.draw("hosts", 4, format="text")
    cl.product("broadcast", [[0, 1, 2], [3]])
    assert len(cl.verify("product", 4, "broadcast")) == 8
    assert "HAN" in next(a for a in cl.algorithms("broadcast") if a.name == "product").paper


def test_what_passes_between_hosts() -> None:
    hosts = [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert cl.product("allreduce", hosts).between() == (1.0, 1.0)
    assert cl.product("allreduce", [[0, 1, 2], [3]]).between() == (1.0, 1.0)
    assert cl.product("allreduce", hosts, "ring", far_first=True).between() == (4.0, 4.0)
    assert cl.product("reduce_scatter", [[0, 1, 2], [3]]).between()[0] == 0.75
    assert cl.product("broadcast", hosts).between(root=5) == (1.0, 1.0)
    assert cl.product("allreduce", hosts).between(0) == cl.product("allreduce", hosts).between(-2)
    with pytest.raises(cl.InvalidArgumentError, match="no level 2"):
        cl.product("allreduce", hosts).between(2)


@pytest.mark.parametrize(
    ("levels", "why"),
    [
        ([[0, 1], [1, 2]], "rank 1 is named twice"),
        ([[0, 1], []], "a list is empty"),
        ([[0, 1], [3]], "numbered from 0, none left out"),
        ([], "a list is empty"),
        ([0, [1, 2]], "ranks 0 and 1 lie in lists of different depths"),
        ([[0, "1"]], "this is no list"),
        (4, "this is no list"),
    ],
)
def test_levels_that_make_no_sense(levels: Any, why: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=why):
        cl.product("allreduce", levels)


def test_what_cannot_be_is_refused() -> None:
    hosts = [[0, 1, 2], [3]]
    refused = cl.InvalidArgumentError
    with pytest.raises(cl.UnsupportedError, match="no hierarchical form"):
        cl.product("gather", hosts)
    with pytest.raises(cl.UnsupportedError, match=r"halving at level 0.*3 members"):
        cl.product("allreduce", hosts, "halving")
    with pytest.raises(cl.UnsupportedError, match="unequal sizes"):
        cl.product("allreduce", hosts, far_first=True)
    with pytest.raises(refused, match="ring at level 0 does not suit"):
        cl.product("broadcast", hosts, "ring")
    with pytest.raises(refused, match=r"phase 'rings' is unknown.*'ring'"):
        cl.product("allreduce", hosts, "rings")
    with pytest.raises(refused, match="give 2 words"):
        cl.product("allreduce", hosts, ["ring"])
    with pytest.raises(refused, match="built-in allreduce"):
        cl.product("allreduce", hosts, name="ring")
    with pytest.raises(refused, match="unknown"):
        cl.product("allreduces", hosts)
    cl.product("allreduce", hosts)
    with pytest.raises(cl.UnsupportedError, match="not defined for 3 ranks: p = 4"):
        cl.verify("product", 3)
    with pytest.raises(cl.UnsupportedError, match="not defined for 5 ranks: p = 4"):
        cl.draw("product", 5)

    def run(comm: cl.Communicator) -> None:
        with pytest.raises(cl.UnsupportedError, match="made for 4 ranks, not for 2"):
            comm.allreduce(np.ones(3), algorithm="product")
        comm.barrier()

    on_ranks(2, run)


def test_ranks_that_disagree() -> None:
    """Two ranks believe in other hosts than the other two: no call may run."""
    cl.product("allreduce", [[0, 1], [2, 3]], name="pairs")
    cl.product("allreduce", [[0, 2], [1, 3]], name="others")

    def run(comm: cl.Communicator) -> None:
        name = "pairs" if comm.rank < 2 else "others"
        with pytest.raises(cl.MismatchError, match="algorithm"):
            comm.allreduce(np.ones(3), algorithm=name)

    on_ranks(4, run)
