# SPDX-License-Identifier: Apache-2.0
"""How a vector is shared out among trees: few trees, and as many chunks for each as it can carry.

Few of them, as in Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020:
many trees of little weight would cost more messages than they bring bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from collectives.packing.arborescences import Parents
from collectives.packing.graph import Capacities

_SAME = 1e-9  # rates that differ by less are equal: capacities have 12 digits
# Into how many shares a vector is cut: what is tried.
TOTALS = (*range(1, 65), 96, 128, 192, 256)

# A weight in bytes per second, and a tree.
Tree = tuple[float, Parents]
Arcs = list[tuple[int, int]]
Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


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

    Each group carries an equal part of the vector, which is cut into as many shares, of those that
    are tried, as bring the highest rate. The rate is the vector's, in bytes per second: no link
    carries more than it can.
    """
    seconds = _seconds([tree for group in groups for tree in group], capacities, up, down)
    best, found = 0.0, list[list[int]]()
    for total in TOTALS:
        if found and (total > most or best >= bound * (1 - _SAME)):
            break
        tried = _apportioned(groups, seconds, total)
        rate = total * len(groups) / float(_busy(tried, seconds).max())
        if rate > best * (1 + _SAME):
            best, found = rate, [parts.tolist() for parts in tried]
    return best, found


def _seconds(trees: Sequence[Tree], capacities: Capacities, up: bool, down: bool) -> Numbers:
    """Return, by tree and link, how long the link takes for a byte of the tree; shape (t, l)."""
    ways = [arcs(parents, up, down) for _, parents in trees]
    links = {arc: i for i, arc in enumerate(sorted({arc for way in ways for arc in way}))}
    found = np.zeros((len(trees), len(links)))
    for row, way in zip(found, ways, strict=True):
        for a, b in way:
            row[links[a, b]] = 1 / capacities[a][b]
    return found


def _apportioned(groups: Sequence[Sequence[Tree]], seconds: Numbers, total: int) -> list[Counts]:
    """Share ``total`` out in each group, in proportion to its weights, rounded down.

    What is left over goes where the slowest link of the tree is then the quickest.
    """
    found, exact, first = list[Counts](), list[Numbers](), 0
    for group in groups:
        weights = np.array([weight for weight, _ in group])
        exact.append(weights * (total / math.fsum(weights)))
        found.append(np.floor(exact[-1] + _SAME).astype(np.int64))
    busy = _busy(found, seconds)
    for parts, wanted in zip(found, exact, strict=True):
        each = seconds[first : first + len(parts)]
        first += len(parts)
        for _ in range(total - int(parts.sum())):
            then = np.where(each > 0, busy + each, 0).max(axis=1)
            chosen = int(np.lexsort((parts - wanted, then))[0])
            parts[chosen] += 1
            busy = busy + each[chosen]
    return found


def _busy(shares: Sequence[Counts], seconds: Numbers) -> Numbers:
    """Return how long each link takes: the same bits on every machine, as BLAS would not give."""
    found = np.zeros(seconds.shape[1])
    for row, part in zip(seconds, np.concatenate(shares), strict=True):
        found += row * part
    return found
