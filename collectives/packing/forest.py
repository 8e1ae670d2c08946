# SPDX-License-Identifier: Apache-2.0
"""As much of trees from every node, which share the arcs of a graph.

Zhao et al., ForestColl: Throughput-Optimal Collective Communications on Heterogeneous Network
Fabrics, arXiv 2402.06787, 2024: one more node from which an arc of x units leads to each other.
Arborescences with it as their root, of n x in all, use each of these arcs up, so that x of them
begin at each node. The largest x is the least c(S) / |S| of what leaves a set S of nodes.
"""

from __future__ import annotations

from fractions import Fraction

from collectives.packing.flow import Matrix, Residual, bits


def share(units: Matrix) -> Fraction:
    """Return the largest x."""
    n = len(units)
    value = Fraction(min(sum(row[b] for row in units) for b in range(n)), n - 1)
    while True:
        behind = _short(extended(units, value), value.numerator)
        if not behind:
            return value
        inside = bits(behind)
        entering = sum(
            units[a][b] for a in range(n) if not behind >> a & 1 for b in inside
        )  # too little: a new, smaller value, as in Newton's method
        value = Fraction(entering, n - len(inside))


def extended(units: Matrix, value: Fraction) -> Matrix:
    """Return the graph with one more node, in units of the value's denominator."""
    rows = [[capacity * value.denominator for capacity in row] + [0] for row in units]
    return [*rows, [value.numerator] * len(units) + [0]]


def _short(arcs: Matrix, value: int) -> int:
    """Return the bits of nodes that get less than n ``value`` from the last one; 0: none do."""
    n = len(arcs) - 1
    for node in range(n):
        left = Residual(arcs)
        if left.push(n, node, n * value) < n * value:
            return (1 << n) - 1 & ~left.reached(n)
    return 0
