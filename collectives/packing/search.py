# SPDX-License-Identifier: Apache-2.0
"""Finds the trees of a collective: which graph they are packed into, from which roots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from collectives.errors import InvalidArgumentError
from collectives.packing.arborescences import Parents, Weighted, least_cut, packed
from collectives.packing.flow import Matrix, bits
from collectives.packing.forest import extended, share
from collectives.packing.graph import Capacities, whole
from collectives.packing.pipes import centred
from collectives.packing.shares import Tree, filled, shared
from collectives.packing.spanning import directed

# Kind: whether its data go up the trees, whether down, and whether every rank is a root.
KINDS = {
    "broadcast": (False, True, False),
    "reduce": (True, False, False),
    "allreduce": (True, True, False),
    "allgather": (False, True, True),
    "reduce_scatter": (True, False, True),
}
MOST_CHUNKS = 1 << 11  # of a vector: to prove the plan of more takes long


@dataclass(frozen=True)
class Packing:
    """Trees, each with its shares of a vector, or of its root's part, which is cut into ``total``.

    ``rate`` and ``bound`` are in bytes of the vector per second.
    """

    rate: float
    bound: float
    total: int
    trees: tuple[tuple[Parents, int], ...]


def find(kind: str, capacities: Capacities, root: int, most: int, blocks: int) -> Packing:
    """Return a packing of at most so many trees, for every root if each rank is one.

    Raises InvalidArgumentError where not all ranks are joined by links.
    """
    up, down, everywhere = KINDS[kind]
    p = len(capacities)
    if p == 1:
        return Packing(math.inf, math.inf, 1, ())
    if not any(map(any, capacities)):
        raise InvalidArgumentError(f"pack: {kind}: no two of {p} ranks have a link: give some")
    units, unit = whole(capacities)
    if everywhere:
        bound, groups = _forest(kind, units, unit, most)
    elif up and down:
        bound, trees = _both_ways(units, unit, most)
        groups = [filled(trees, capacities, up, down)]
    else:
        bound, trees = _one_way(kind, units, unit, root, most)
        groups = [filled(trees, capacities, up, down)]
    limit = MOST_CHUNKS // (len(groups) * blocks)
    rate, shares = shared(groups, capacities, up, down, bound, limit)
    chosen = [
        (parents, part)
        for group, parts in zip(groups, shares, strict=True)
        for (_, parents), part in zip(group, parts, strict=True)
        if part
    ]
    return Packing(rate, bound, sum(shares[0]), tuple(sorted(chosen, key=_order)))


def _order(tree: tuple[Parents, int]) -> tuple[int, int]:
    """By root, and the heaviest first."""
    parents, part = tree
    return parents.index(-1), -part


def _one_way(
    kind: str, units: Matrix, unit: float, root: int, most: int
) -> tuple[float, list[Tree]]:
    graph = units if kind == "broadcast" else _reversed(units)
    value, behind = least_cut(graph, root)
    if value == 0:
        raise _cut_off(kind, behind, root, kind == "broadcast")
    trees = packed(graph, root, value, lambda trees: len(trees) >= most)
    return value * unit, _in_bytes(trees, unit)


def _both_ways(units: Matrix, unit: float, most: int) -> tuple[float, list[Tree]]:
    """Trees that send both ways on each of their links: as much as the weaker way carries."""
    p = len(units)
    for a in range(p):
        for b in range(p):
            if units[a][b] and not units[b][a]:
                raise InvalidArgumentError(
                    f"pack: the link ({a}, {b}) goes one way, and an allreduce sends both ways: "
                    f"give ({b}, {a}) as well, or leave out both"
                )
    graph = [[min(units[a][b], units[b][a]) for b in range(p)] for a in range(p)]
    value, behind = least_cut(graph, 0)
    if value == 0:
        raise _cut_off("allreduce", behind, 0, True)
    best, arcs = directed(graph)
    trees = packed(arcs, 0, best.numerator, lambda trees: len(trees) >= most)
    unit /= best.denominator
    return best.numerator * unit, _in_bytes([(w, centred(tree)) for w, tree in trees], unit)


def _forest(kind: str, units: Matrix, unit: float, most: int) -> tuple[float, list[list[Tree]]]:
    """Trees for each rank: a list for each."""
    p = len(units)
    for graph, forth in ((units, True), (_reversed(units), False)):
        value, behind = least_cut(graph, 0)
        if value == 0:
            raise _cut_off(kind, behind, 0, forth)
    graph = units if kind == "allgather" else _reversed(units)
    part = share(graph)

    def enough(trees: Sequence[Weighted]) -> bool:
        return len(trees) >= most * p and len({tree.index(p) for _, tree in trees}) == p

    found = packed(extended(graph, part), p, p * part.numerator, enough)
    groups: list[list[Weighted]] = [[] for _ in range(p)]
    for weight, tree in found:
        root = tree.index(p)
        groups[root].append((weight, tuple(-1 if q == p else q for q in tree[:p])))
    unit /= part.denominator
    kept = [sorted(group, reverse=True)[:most] for group in groups]
    return p * part.numerator * unit, [_in_bytes(group, unit) for group in kept]


def _in_bytes(trees: Sequence[Weighted], unit: float) -> list[Tree]:
    return [(weight * unit, parents) for weight, parents in trees]


def _reversed(units: Matrix) -> Matrix:
    return [list(column) for column in zip(*units, strict=True)]


def _cut_off(kind: str, behind: int, root: int, forth: bool) -> InvalidArgumentError:
    ranks = bits(behind)
    who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
    why = f"cannot be reached from rank {root}" if forth else f"cannot reach rank {root}"
    return InvalidArgumentError(
        f"pack: {kind}: {who} {why} by the links given: add links, or leave out such ranks"
    )
