# SPDX-License-Identifier: Apache-2.0
"""Arborescences with one root that share the arcs of a graph.

There are k of them, none using more of an arc than there is, just where each other node can get
k units from the root (Edmonds, Edge-disjoint Branchings, 1973). They are found as in the proof of
Lovasz, On Two Minimax Theorems in Graph Theory, JCTB 21, 1976: a tree grows by an arc if what is
left still holds k - 1. Here it grows by w units at a time and holds k - w, the heaviest trees
first; the weight of each is raised as far as can be, after Gabow & Manu, Packing Algorithms for
Arborescences (and Spanning Trees) in Capacitated Graphs, Mathematical Programming 82, 1998.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from collectives.errors import InternalError
from collectives.packing.flow import Matrix, Residual, bits

# The parent of each node, -1 of the root.
Parents = tuple[int, ...]
Weighted = tuple[int, Parents]


def least_cut(units: Matrix, root: int) -> tuple[int, int]:
    """Return how much every node can get from the root, and the bits of who is cut off by it."""
    n = len(units)
    least, behind = sum(units[root]), (1 << n) - 1 & ~(1 << root)
    for node in range(n):
        if node == root:
            continue
        left = Residual(units)
        flow = left.push(root, node, least)
        if flow < least:
            least, behind = flow, (1 << n) - 1 & ~left.reached(root)
    return least, behind


def packed(
    units: Matrix, root: int, value: int, enough: Callable[[Sequence[Weighted]], bool]
) -> list[Weighted]:
    """Return arborescences of the total weight ``value``, or fewer once they are ``enough``.

    Every node must be able to get ``value`` from the root.
    """
    left = Residual(units)
    trees: list[Weighted] = []
    weight = value
    while value > 0 and not enough(trees):
        weight = min(weight, value)
        grown = _grown(left, root, value, weight)
        if grown is None:
            weight //= 2
            if weight == 0:
                raise InternalError("pack: no tree was found where the theorem says there is one")
            continue
        most = _raised(left, root, grown, value)
        for node, parent in enumerate(grown):
            if parent >= 0:
                left.add(parent, node, -most)
        value -= most
        trees.append((most, grown))
    return trees


def _grown(whole: Residual, root: int, value: int, weight: int) -> Parents | None:
    """Return a tree of this weight without which ``value - weight`` is left; None: there is none.

    An arc that is refused once would be refused later too, as less and less is left: so each is
    looked at once, those of the nodes nearest to the root first.
    """
    left = whole.copy()
    n = len(left.left)
    parents, front, outside = [-1] * n, [root], (1 << n) - 1 & ~(1 << root)
    for node in front:
        row = left.left[node]
        others = [other for other in bits(left.to[node] & outside) if row[other] >= weight]
        for other in sorted(others, key=row.__getitem__, reverse=True):
            if not _spares(left, root, node, other, value):
                continue
            left.add(node, other, -weight)
            parents[other] = node
            outside &= ~(1 << other)
            front.append(other)
    return None if outside else tuple(parents)


def _spares(left: Residual, root: int, node: int, other: int, value: int) -> bool:
    """Whether every cut that the arc from node to other crosses still has the whole value."""
    trial = left.copy()
    if node != root:
        trial.put(root, node, value)
    return trial.push(root, other, value) == value


def _raised(whole: Residual, root: int, parents: Parents, value: int) -> int:
    """Return the largest weight of a tree without which ``value`` less it is left."""
    arcs = [(parent, node) for node, parent in enumerate(parents) if parent >= 0]
    weight = min(value, min(whole.left[a][b] for a, b in arcs))
    while True:
        left = whole.copy()
        for a, b in arcs:
            left.add(a, b, -weight)
        behind = _short(left, root, value - weight)
        if not behind:
            return weight
        inside = bits(behind)
        entering = sum(1 for a, b in arcs if behind >> b & 1 and not behind >> a & 1)
        total = sum(
            units
            for a, row in enumerate(whole.left)
            if not behind >> a & 1
            for units in (row[b] for b in inside)
        )
        weight = (total - value) // (entering - 1)


def _short(left: Residual, root: int, value: int) -> int:
    """Return the bits of nodes that together get less than ``value`` from the root; 0: none do."""
    n = len(left.left)
    for node in range(n):
        if node != root:
            trial = left.copy()
            if trial.push(root, node, value) < value:
                return (1 << n) - 1 & ~trial.reached(root)
    return 0
