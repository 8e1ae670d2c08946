# SPDX-License-Identifier: Apache-2.0
"""Trees packed into irregular networks: proved, never more than a link carries, and run."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from collectives.topology import Link, Place
from tests.python.graphs import NVLINK, Links, both_ways, bound, dgx1
from tests.python.random_graphs import graphs
from tests.python.ranks import on_ranks

KINDS = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter")
TRIANGLE = both_ways({(0, 1): 2e9, (1, 2): 2e9, (0, 2): 1e9})


def loads(made: cl.Pack, root: int) -> Links:
    """Return how much of a vector each link carries, counted in the schedule."""
    shown = cl.schedule(made.name, made.p, made.kind, root)
    found = Links()
    for rank, steps in enumerate(shown.ranks):
        for step in steps:
            if step.op == "send":
                cells = sum(segment.cells for segment in step.source)
                for peer in step.peers:
                    found[rank, peer] = found.get((rank, peer), 0) + cells / shown.chunks
    return found


def check_rate(made: cl.Pack, links: Links, root: int) -> None:
    """Check that the schedule has the rate that is told, and what else is told of it."""
    seconds = {pair: load / links[pair] for pair, load in loads(made, root).items()}
    assert 1 / max(seconds.values()) == pytest.approx(made.rate)
    assert made.rate <= made.bound * (1 + 1e-9)
    assert made.gap == pytest.approx(1 - made.rate / made.bound, abs=2e-9)
    assert sum(tree.rate for tree in made.trees) == pytest.approx(made.rate)
    assert list(made.trees) == sorted(made.trees, key=lambda tree: (tree.root, -tree.rate))
    for tree in made.trees:
        assert tree.parents[tree.root] == -1
        assert all((q, r) in links for r, q in enumerate(tree.parents) if q >= 0)


@settings(max_examples=50, deadline=None)
@given(graphs(), st.sampled_from(KINDS), st.data())
def test_irregular_graphs(links: Links, kind: str, data: st.DataObject) -> None:
    p = 1 + max(map(max, links))
    root = data.draw(st.integers(0, p - 1)) if kind in ("broadcast", "reduce") else 0
    trees, blocks = data.draw(st.sampled_from([None, 1, 3])), data.draw(st.integers(1, 3))
    made = cl.pack(links, kind=kind, root=root, trees=trees, blocks=blocks)
    check_rate(made, links, root)
    proofs = [proof for proof in cl.verify("pack", p, kind) if proof.root == root]
    assert [proof.message for proof in proofs] == ["", ""]
    assert proofs[0].same_tree_on_ranks or kind == "reduce_scatter"
    forest = kind in ("allgather", "reduce_scatter")
    roots = [tree.root if forest else root for tree in made.trees]
    assert max(map(roots.count, roots)) <= (trees or max(16, 2 * p))
    if p <= 6:
        assert made.bound == pytest.approx(float(bound(kind, links, root)))


@pytest.mark.parametrize(
    ("kind", "links"),
    [("broadcast", 6), ("reduce", 6), ("allreduce", 24 / 7), ("allgather", 48 / 7),
     ("reduce_scatter", 48 / 7)],
)  # fmt: skip
def test_a_dgx1_is_used_up(kind: str, links: float) -> None:
    """Each GPU has six NVLinks, all of which are busy all the time."""
    made = cl.pack(dgx1(), kind=kind)
    assert made.gap == 0
    assert made.rate == pytest.approx(links * NVLINK)
    check_rate(made, dgx1(), 0)
    for root in range(8) if kind in ("broadcast", "reduce") else ():
        assert cl.pack(dgx1(), kind=kind, root=root).rate == pytest.approx(links * NVLINK)


def test_fewer_trees_and_what_they_cost() -> None:
    every = cl.pack(dgx1(), kind="broadcast")
    few = cl.pack(dgx1(), kind="broadcast", trees=2, name="two")
    one = cl.pack(dgx1(), kind="broadcast", trees=1, name="one")
    assert len(every.trees) > len(few.trees) == 2 > len(one.trees) == 1
    assert 0 == every.gap < few.gap < one.gap < 1
    assert every.bound == few.bound == one.bound
    check_rate(few, dgx1(), 0)


def test_each_rank_of_a_forest_has_as_many_trees_as_are_wanted() -> None:
    """The packing has four from rank 2, and one from ranks 0 and 1."""
    links: Links = {
        (0, 1): 8, (1, 0): 7, (0, 2): 2, (2, 0): 2, (0, 3): 9, (3, 0): 7,
        (1, 2): 9, (2, 1): 6, (1, 3): 3, (3, 1): 2, (2, 3): 1, (3, 2): 5,
    }  # fmt: skip
    made = cl.pack(links, kind="allgather", trees=2)
    check_rate(made, links, 0)
    roots = [tree.root for tree in made.trees]
    assert [roots.count(rank) for rank in range(4)] == [1, 1, 2, 2]
    assert cl.pack(links, kind="allgather", trees=4).rate > made.rate


def test_one_tree_takes_all_that_its_links_carry() -> None:
    ring = both_ways({(0, 1): 2.0, (1, 2): 2.0, (2, 0): 1.0})
    assert cl.pack(ring, trees=1).rate == 2.0
    assert cl.pack(ring).rate == cl.pack(ring).bound == 2.5


# ---- what it says of itself ----------------------------------------------------------------------


def test_it_is_listed_and_drawn() -> None:
    made = cl.pack(TRIANGLE, name="triangle")
    assert (made.p, made.kind, made.root, made.rate) == (3, "allreduce", 0, 2.5e9)
    assert made.summary == "3 ranks, 6 links: 3 trees, 0.0 % below the bound."
    (entry,) = [a for a in cl.algorithms("allreduce") if a.name == "triangle"]
    assert (entry.restriction, entry.summary) == ("p = 3", made.summary)
    assert "Blink" in entry.paper
    assert "ForestColl" in cl.pack(TRIANGLE, kind="allgather").paper
    assert [entry.fits(p) for p in (2, 3)] == [False, True]
    assert "<svg" in cl.draw("triangle", 3)
    assert cl.draw("triangle", 3, format="text").startswith("allreduce triangle: p = 3, chunks =")
    assert {tree.height for tree in made.trees} == {1}  # roots are in the middle
    assert sorted(tree.root for tree in made.trees) == [0, 1, 2]
    assert cl.pack(TRIANGLE, name="triangle") == made


def test_links_as_unequal_as_can_be() -> None:
    made = cl.pack({(0, 1): 1e-100, (1, 0): 1e100, (1, 2): 1e100, (2, 1): 3})
    assert made.rate == pytest.approx(1e-100)
    assert made.gap == 0
    assert cl.pack({(0, 1): 1e100, (1, 2): 7}, kind="broadcast").rate == pytest.approx(7)


def test_one_rank_and_two() -> None:
    alone = cl.pack(cl.Topology((Place("a"),)))
    assert (alone.rate, alone.bound, alone.gap, alone.trees) == (math.inf, math.inf, 0.0, ())
    assert "0 trees" in alone.summary
    pair = cl.pack({(0, 1): 3, (1, 0): 4})
    assert (pair.rate, pair.gap, len(pair.trees)) == (3.0, 0.0, 1)
    assert "1 tree," in pair.summary

    def run(comm: cl.Communicator) -> None:
        assert comm.allreduce(np.array([7.0]), algorithm="pack").tolist() == [7.0]

    cl.pack(cl.Topology((Place("a"),)))
    on_ranks(1, run)


# ---- topologies ----------------------------------------------------------------------------------


def machine(links: Links, p: int) -> cl.Topology:
    """Return GPUs with NVLinks, and, where there is none, a shared bus."""
    pairs = {(a, b): Link(2e-6, 1 / rate) for (a, b), rate in links.items() if a < b}
    return cl.Topology((Place("dgx"),) * p, {"numa": Link(5e-6, 1 / 10e9)}, pairs)


def test_pairs_have_links_of_their_own_and_others_share_their_ports() -> None:
    three = machine(both_ways({(0, 1): NVLINK}), 4)
    rates = cl.pack(three).capacities
    assert rates[0][1] == rates[1][0] == pytest.approx(NVLINK)
    assert rates[0][2] == rates[1][3] == pytest.approx(10e9 / 2)  # a port for two other ranks
    assert rates[2][0] == pytest.approx(10e9 / 3)
    hosts = cl.Topology(
        (Place("a"), Place("a"), Place("b"), Place("c")),
        {"numa": Link(1e-6, 1 / 8e9), "network": Link(1e-5, 1 / 12e9)},
    )
    made = cl.pack(hosts)
    rates = made.capacities
    assert rates[0][1] == pytest.approx(8e9)
    assert rates[0][2] == rates[1][3] == pytest.approx(3e9)  # host a's port out, for four pairs
    assert rates[2][0] == rates[3][1] == pytest.approx(3e9)  # its port in
    assert rates[2][3] == rates[3][2] == pytest.approx(4e9)  # ports of b and c, for three pairs
    assert made.bound == pytest.approx(24e9 / 3)


def test_levels_that_nobody_measured_have_no_links() -> None:
    places = (Place("a"), Place("a"), Place("b"))
    alone = cl.Topology(places, {"numa": Link(0, 1e-9)})
    with pytest.raises(cl.InvalidArgumentError, match="rank 2 cannot be reached from rank 0"):
        cl.pack(alone)
    joined = alone.edited(pairs={(1, 2): Link(0, 1e-9)})
    assert cl.pack(joined).trees[0].parents == (1, -1, 1)


FRAGMENTS = [(0, 1, 4), (3, 0, 1), (2, 6, 7), (1, 0, 3, 4)]


@pytest.mark.parametrize("gpus", FRAGMENTS, ids=str)
def test_a_part_of_a_dgx1_is_quicker_than_any_ring(gpus: tuple[int, ...]) -> None:
    """Where NVLinks make no ring, as for 0, 1 and 4, a ring waits for the bus."""
    cl.pack(dgx1(*gpus))

    def seconds(order: tuple[int, ...], name: str) -> float:
        there = machine(dgx1(*order), len(order))
        return cl.simulate(name, there, 1 << 28, tiles=16).seconds

    assert seconds(gpus, "pack") < 0.6 * min(seconds(order, "ring") for order in permutations(gpus))


@pytest.mark.parametrize("without", [None, (0, 3), (5, 7)], ids=str)
def test_a_dgx1_without_a_link(without: tuple[int, int] | None) -> None:
    """Ranks lie along the best ring, of which two links make each step, or, without one, one."""
    links = dgx1(without=without)
    made = cl.pack(links)
    there = machine(links, 8)
    packed, ring = (cl.simulate(name, there, 1 << 28, tiles=16) for name in ("pack", "ring"))
    assert packed.seconds < 0.5 * ring.seconds
    assert packed.algbw > 0.7 * made.rate
    assert packed.link_bytes["numa out"] == 0


@pytest.mark.parametrize("rival", ["chain", "double_tree", "scatter_allgather"])
def test_a_dgx1_broadcasts_by_six_trees(rival: str) -> None:
    """A chain along the best ring has two of the root's six links."""
    cl.pack(dgx1(), kind="broadcast")
    packed, other = (
        cl.simulate(name, machine(dgx1(), 8), 1 << 28, kind="broadcast", tiles=16)
        for name in ("pack", rival)
    )
    assert packed.seconds < 0.5 * other.seconds


# ---- results -------------------------------------------------------------------------------------


def test_results() -> None:
    links = dgx1(0, 1, 2, 3, 4)
    for kind in KINDS:
        cl.pack(links, kind=kind)

    def run(comm: cl.Communicator) -> None:
        p, rank = comm.size, comm.rank
        for n in (0, 1, 3, 4099):
            whole = p * np.arange(n) + p * (p - 1) // 2
            mine = np.arange(n) + rank
            np.testing.assert_array_equal(comm.allreduce(mine.copy(), algorithm="pack"), whole)
            part = comm.reduce_scatter(np.repeat(np.arange(p), n) + rank, algorithm="pack")
            np.testing.assert_array_equal(part, np.full(n, p * rank + p * (p - 1) // 2))
            gathered = comm.allgather(np.full(n, rank), algorithm="pack")
            np.testing.assert_array_equal(gathered, np.repeat(np.arange(p), n))
            for root in range(p):
                x = np.full(n, rank)
                comm.broadcast(x, root, algorithm="pack")
                np.testing.assert_array_equal(x, np.full(n, root))
                total = comm.reduce(mine.copy(), root=root, algorithm="pack")
                if rank == root:
                    np.testing.assert_array_equal(total, whole)

    on_ranks(5, run)


def test_ranks_that_disagree() -> None:
    """Whoever measured other links has other trees: no call may run."""
    cl.pack(TRIANGLE, name="one")
    cl.pack(both_ways({(0, 1): 1.0, (1, 2): 1.0}), name="other")

    def run(comm: cl.Communicator) -> None:
        with pytest.raises(cl.MismatchError):
            comm.allreduce(np.ones(9), algorithm="other" if comm.rank == 2 else "one")

    on_ranks(3, run)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "options", "why"),
    [
        ({(0, 1): 1, (1, 0): 1, (2, 3): 1, (3, 2): 1}, {}, "ranks 2, 3 cannot be reached from ra"),
        ({(0, 1): 1, (1, 2): 1}, {}, r"the link \(0, 1\) goes one way.*give \(1, 0\) as well"),
        ({(0, 1): 1}, {"kind": "broadcast", "root": 1}, "rank 0 cannot be reached from rank 1 by"),
        ({(0, 1): 1}, {"kind": "reduce"}, "rank 1 cannot reach rank 0"),
        ({(0, 1): 1}, {"kind": "allgather"}, "rank 1 cannot reach rank 0"),
        ({(1, 0): 1}, {"kind": "reduce_scatter"}, "rank 1 cannot be reached from rank 0"),
        ({(0, 3): 1, (3, 0): 1}, {}, "ranks 1, 2 cannot be reached"),
        (TRIANGLE, {"root": 3}, "root is 3: give a rank from 0 to 2"),
        (TRIANGLE, {"root": "0"}, "root is '0': give a rank"),
        ({(0, 1): "fast"}, {}, r"capacity of \(0, 1\) is 'fast': give bytes per second"),
        ({(0, 1): 0}, {}, "is 0: give bytes per second"),
        ({(0, 1): -1.0}, {}, "is -1.0: give"),
        ({(0, 1): math.nan}, {}, "is nan: give"),
        ({(0, 1): math.inf}, {}, "is inf: give"),
        ({(0, 1): 10**400}, {}, r"is 10*\.\.\.: give"),
        ({(0, 1): True}, {}, "is True: give"),
        ({(0, 1): 1, (1, 0): 1e101}, {}, r"rank 1 to rank 0 go 1e\+101 bytes per second: give a n"),
        ({(0, 1): 1e-101, (1, 0): 1}, {}, "number from 1e-100 to 1e"),
        (cl.Topology((Place("a"),) * 2, {"numa": Link(0, 1e-300)}), {}, "rank 0 to rank 1 go"),
        ({(0, 64): 1}, {}, "there are 65 ranks: trees are packed for 64 at most"),
        ({(0, 0): 1}, {}, r"\(0, 0\) is no link: give pairs of two ranks"),
        ({(0, -1): 1}, {}, "is no link"),
        ({(0, 1, 2): 1}, {}, "is no link"),
        ({(0, 1.5): 1}, {}, "is no link"),
        ({3: 1}, {}, "3 is no link"),
        ({}, {}, "there is no link"),
        ("torus:4x4", {}, "the topology is 'torus:4x4': give a Topology, or a mapping"),
        (None, {}, "the topology is None"),
        (cl.Topology((Place("a"),) * 2), {}, "no two of 2 ranks have a link"),
        (cl.Topology((Place("a"),) * 65), {}, "there are 65 ranks"),
        (cl.Topology((Place("a"),) * 2, {"numa": Link(1, 0)}), {}, "link of level 'numa' has beta"),
        (cl.Topology((Place("a"),) * 2, {}, {(0, 1): Link(1, 0)}), {}, "of ranks 0 and 1 has beta"),
        (TRIANGLE, {"kind": "allreduces"}, "collective 'allreduces' is unknown"),
        (TRIANGLE, {"trees": 0}, "trees is 0: give a number from 1 to 4096"),
        (TRIANGLE, {"blocks": 65}, "blocks is 65: give a number from 1 to 64"),
        (TRIANGLE, {"name": "ring"}, "'ring' is a built-in allreduce"),
    ],
)
def test_what_is_refused(links: Any, options: dict[str, Any], why: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=why):
        cl.pack(links, **options)


def test_other_kinds_and_other_numbers_of_ranks() -> None:
    with pytest.raises(cl.UnsupportedError, match="pack: alltoall has no trees: there are broadca"):
        cl.pack(TRIANGLE, kind="alltoall")
    cl.pack(TRIANGLE)
    with pytest.raises(cl.UnsupportedError, match="not defined for 4 ranks: p = 3"):
        cl.verify("pack", 4)
    with pytest.raises(cl.UnsupportedError, match="made for 3 ranks, not for 2"):
        cl.pack(TRIANGLE).encoded(2)
    one_way = cl.pack({(0, 1): 1}, kind="broadcast", name="one_way")
    with pytest.raises(cl.InvalidArgumentError, match="rank 0 cannot be reached from rank 1"):
        one_way.encoded(2, 1)
