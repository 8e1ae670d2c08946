# SPDX-License-Identifier: Apache-2.0
"""What trees are packed by: flows, cuts, partitions, and trees that exhaust them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings

from collectives.packing.arborescences import Weighted, least_cut, packed
from collectives.packing.flow import Matrix, Residual, bits
from collectives.packing.forest import extended, share
from collectives.packing.graph import whole
from collectives.packing.pipes import centred, depths
from collectives.packing.shares import Tree, filled, shared
from collectives.packing.spanning import directed
from tests.python.graphs import Links, bound, leaving, matrix, strongest
from tests.python.random_graphs import graphs


def everything(trees: Sequence[Weighted]) -> bool:
    """Never say that there are enough."""
    return False


def check_packed(units: Matrix, root: int, value: int) -> list[Weighted]:
    """Check that trees of this weight are found, and that they fit."""
    trees = packed(units, root, value, everything)
    assert sum(weight for weight, _ in trees) == value
    left = [list(row) for row in units]
    for weight, parents in trees:
        assert weight > 0
        assert parents[root] == -1
        assert len(depths(parents)) == len(units)  # every node gets to the root
        for node, parent in enumerate(parents):
            if node != root:
                left[parent][node] -= weight
    assert min(map(min, left)) >= 0
    arcs = sum(1 for row in units for one in row if one)
    assert len(trees) <= arcs + len(units)
    return trees


def test_a_flow_goes_round_what_is_in_its_way() -> None:
    units = [[0, 3, 2, 0], [0, 0, 5, 2], [0, 0, 0, 3], [0, 0, 0, 0]]
    left = Residual(units)
    assert left.copy().push(0, 3, 4) == 4
    assert left.push(0, 3, 100) == 5
    assert bits(left.reached(0)) == [0]
    assert left.push(0, 3, 1) == 0
    assert sum(left.left[b][a] - units[b][a] for a in range(4) for b in range(4) if a != b) == 0


def test_a_flow_takes_back_what_it_sent() -> None:
    """The shortest way, 0 1 2 7, blocks both longer ones until it is turned round at 1 - 2."""
    units = [[0] * 8 for _ in range(8)]
    for way in ((0, 1, 2, 7), (0, 3, 4, 2), (1, 5, 6, 7)):
        for a, b in pairwise(way):
            units[a][b] = 1
    left = Residual(units)
    assert left.push(0, 7, 1) == 1
    assert left.left[1][2] == 0
    assert left.push(0, 7, 9) == 1
    assert left.left[1][2] == 1


@settings(max_examples=60, deadline=None)
@given(graphs(6, both=False))
def test_arborescences_exhaust_the_least_cut(links: Links) -> None:
    units = matrix(links)
    for root in range(len(units)):
        value, behind = least_cut(units, root)
        assert value == bound("broadcast", links, root)
        inside = set(range(len(units))) - set(bits(behind))
        assert root in inside
        assert leaving(units, inside) == value
        check_packed(units, root, value)


@settings(max_examples=60, deadline=None)
@given(graphs(6))
def test_spanning_trees_exhaust_the_weakest_partition(links: Links) -> None:
    units = matrix(links)
    p = len(units)
    symmetric = [[min(units[a][b], units[b][a]) for b in range(p)] for a in range(p)]
    value, arcs = directed(symmetric)
    assert value == strongest(units)
    assert sum(map(sum, arcs)) == value.numerator * (p - 1)
    for a in range(p):
        for b in range(p):
            assert 0 <= arcs[a][b] + arcs[b][a] <= symmetric[a][b] * value.denominator
    check_packed(arcs, 0, value.numerator)


@settings(max_examples=60, deadline=None)
@given(graphs(6))
def test_forests_exhaust_what_leaves_sets(links: Links) -> None:
    units = matrix(links)
    p = len(units)
    part = share(units)
    assert p * part == bound("allgather", links)
    trees = check_packed(extended(units, part), p, p * part.numerator)
    for root in range(p):
        own = [weight for weight, parents in trees if parents[root] == p]
        assert sum(own) == part.numerator
    assert all(parents.count(p) == 1 for _, parents in trees)


def test_capacities_become_whole_numbers() -> None:
    third = 1 / 3
    assert whole(((0, 25e9), (50e9, 0))) == ([[0, 1], [2, 0]], 25e9)
    assert whole(((0, 1 / 4e-11), (1 / 8e-11, 0))) == ([[0, 2], [1, 0]], 12.5e9)
    units, unit = whole(((0, third), (2 * third, 0)))
    assert abs(units[0][1] * unit - third) < 1e-12
    units, unit = whole(((0, 1e-6), (1e15, 0)))
    assert abs(units[0][1] * unit / 1e-6 - 1) < 1e-5


def test_a_tree_gets_its_root_in_the_middle() -> None:
    assert centred((-1, 0, 1, 2, 3)) == (1, 2, -1, 2, 3)
    assert centred((-1, 0, 0, 0)) == (-1, 0, 0, 0)
    assert centred((1, -1, 1)) == (1, -1, 1)
    assert depths((1, 2, -1, 2, 3)) == (2, 1, 0, 1, 2)


def test_what_is_left_goes_to_one_tree_after_the_other() -> None:
    """Both trees begin with the link from 0 to 1, which has 9."""
    capacities = ((0.0, 9.0, 0.0), (0.0, 0.0, 6.0), (0.0, 0.0, 0.0))
    down: list[Tree] = [(2.0, (-1, 0, 1)), (1.0, (-1, 0, 1))]
    assert [weight for weight, _ in filled(down, capacities, up=False, down=True)] == [5.0, 1.0]
    back = tuple(zip(*capacities, strict=True))
    assert [weight for weight, _ in filled(down, back, up=True, down=False)] == [5.0, 1.0]


def test_a_share_that_is_left_over_goes_where_it_is_carried_the_quickest() -> None:
    capacities = ((0.0, 1.0, 10.0), (0.0, 0.0, 1.0), (0.0, 10.0, 0.0))
    trees: list[Tree] = [(1.0, (-1, 0, 1)), (1.0, (-1, 2, 0))]
    assert shared([trees], capacities, False, True, bound=11.0, most=1) == (10.0, [[0, 1]])
    best = [(1.0, trees[0][1]), (10.0, trees[1][1])]
    assert shared([best], capacities, False, True, bound=11.0, most=64) == (11.0, [[1, 10]])
    assert shared([best], capacities, False, True, bound=11.0, most=10)[0] == 10.0
