# SPDX-License-Identifier: Apache-2.0
"""How a vector is shared out among trees: few trees, and as many chunks for each as it can carry.

Few of them, as in Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020:
many trees of little weight would cost more messages than they bring bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from collectives.packing.arborescences import Parents
from collectives.packing.graph import Capacities

_SAME = 1e-9  # rates that differ by less are equal: capacities have 12 digits
MOST_SHARES = 64

# A weight in bytes per second, and a tree.
Tree = tuple[float, Parents]
Arcs = list[tuple[int, int]]


def arcs(parents: Parents, up: bool, down: bool) -> Arcs:
    """Return the links by which a tree sends."""
    ups = [(node, parent) for node, parent in enumerate(parents) if parent >= 0]
    return [*(ups if up else []), *([(b, a) for a, b in ups] if down else [])]


def filled(trees: Sequence[Tree], capacities: Capacities, up: bool, down: bool) -> list[Tree]:
    """Give each tree in turn what its links have left."""
    left = [list(row) for row in capacities]
    for weight, parents in trees:
        for a, b in arcs(parents, up, down):
            left[a][b] -= weight
    found = []
    for weight, parents in trees:
        used = arcs(parents, up, down)
        more = max(min(left[a][b] for a, b in used), 0.0)
        for a, b in used:
            left[a][b] -= more
        found.append((weight + more, parents))
    return found


def shared(
    groups: Sequence[Sequence[Tree]],
    capacities: Capacities,
    up: bool,
    down: bool,
    bound: float,
    most: int,
) -> tuple[float, list[list[int]]]:
    """Return a rate, and how many shares each tree of each group gets for it.

    Each group carries an equal part of the vector, which is cut into as many shares, ``most`` or
    fewer, as bring the highest rate; of equal rates, the fewest. The rate is the vector's, in bytes
    per second: no link carries more than it can.
    """
    best, shares = 0.0, list[list[int]]()
    ways = [[arcs(parents, up, down) for _, parents in group] for group in groups]
    for total in range(1, most + 1):
        tried = [_apportioned([weight for weight, _ in group], total) for group in groups]
        rate = _rate(ways, tried, capacities, total * len(groups))
        if rate > best * (1 + _SAME):
            best, shares = rate, tried
        if best >= bound * (1 - _SAME):
            break
    return best, shares


def _apportioned(weights: Sequence[float], total: int) -> list[int]:
    """Share out ``total`` in proportion, by the largest remainders (Hamilton)."""
    exact = [weight * total / sum(weights) for weight in weights]
    parts = [int(value + _SAME) for value in exact]
    order = sorted(range(len(weights)), key=lambda i: parts[i] - exact[i])
    for i in order[: total - sum(parts)]:
        parts[i] += 1
    return parts


def _rate(
    ways: Sequence[Sequence[Arcs]],
    shares: Sequence[Sequence[int]],
    capacities: Capacities,
    total: int,
) -> float:
    load = dict[tuple[int, int], int]()
    for group, parts in zip(ways, shares, strict=True):
        for used, part in zip(group, parts, strict=True):
            for arc in used if part else ():
                load[arc] = load.get(arc, 0) + part
    return min(capacities[a][b] * total / units for (a, b), units in load.items())
