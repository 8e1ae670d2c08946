# SPDX-License-Identifier: Apache-2.0
"""Spanning trees that share edges which carry as much either way.

Their weights add up to min c(P) / (|P| - 1) at most, where c(P) is what there is between the parts
of a partition P of the nodes (Tutte 1961; Nash-Williams, Edge-disjoint Spanning Trees of Finite
Graphs, 1961). With k that value, Cunningham's greedy algorithm (Optimal Attack and Reinforcement
of a Network, JACM 32(3), 1985) keeps k (n - 1) of the capacities such that no set X of nodes has
more than k (|X| - 1) within it. Then edges can be directed so that k enters each node but a root,
and so at least k each set of nodes without it: arborescences of that graph are the trees.
"""

from __future__ import annotations

from fractions import Fraction

from collectives.packing.flow import Matrix, Residual, bits


def directed(units: Matrix) -> tuple[Fraction, Matrix]:
    """Return min c(P) / (|P| - 1), and arcs in which node 0 can give its numerator to every node.

    ``units`` is symmetric. An arc and the one back together have at most as much as their edge,
    times the value's denominator.
    """
    value, left = _strongest(units)
    n = len(units)
    sink, load = n, left.left[n][0]
    left.put(0, sink, 0)
    left.push(0, sink, load)  # what enters node 0 is turned round
    return value, [[left.left[b][a] for b in range(n)] for a in range(n)]


def _strongest(units: Matrix) -> tuple[Fraction, Residual]:
    """Return the value, and the edges kept for it, directed: ``left[b][a]`` enters b from a."""
    n = len(units)
    value = Fraction(sum(map(sum, units)) // 2, n - 1)
    while True:
        kept = _Kept(n, value.numerator)
        for a in range(n):
            for b in range(a):
                kept.keep(a, b, units[a][b] * value.denominator)
        parts = kept.parts()
        if kept.total == value.numerator * (n - 1):
            return value, kept.left
        between = sum(
            units[a][b] for a in range(n) for b in range(a) if parts[a] != parts[b]
        )  # less than the value needs: a new, smaller one, as in Newton's method
        value = Fraction(between, len(set(parts)) - 1)


class _Kept:
    """Edges that are kept, directed so that at most ``value`` enters each node.

    ``left[b][a]`` is what enters b from a, which may be turned round, and ``left[b][sink]`` what
    else may enter b: so a flow to the sink makes room at the node where it begins.
    """

    def __init__(self, n: int, value: int) -> None:
        self.value, self.total = value, 0
        self.sink, self.source = n, n + 1
        self.left = Residual([[0] * (n + 2) for _ in range(n + 2)])
        for node in range(n):
            self.left.put(node, self.sink, value)
        self._part = list(range(n))

    def keep(self, a: int, b: int, units: int) -> None:
        """Keep as much of an edge as no set of nodes with both ends has too much of."""
        if not units:
            return
        trial = self._opened(a, b, self.value + units)
        room = trial.push(self.source, self.sink, self.value + units) - self.value
        if room < units:
            self._join(bits(trial.reached(self.source) & ~(1 << self.source)))
        taken = min(room, units)
        self.left = self._opened(a, b, taken)
        self.left.push(self.source, self.sink, taken)
        for one, other in ((a, b), (b, a)):
            self.left.add(one, other, taken - self.left.left[self.source][one])
            self.left.put(self.source, one, 0)
            self.left.put(one, self.source, 0)
        self.total += taken

    def parts(self) -> list[int]:
        """Return a number for each node: that of the largest full set that it is in."""
        return self._part

    def _opened(self, a: int, b: int, units: int) -> Residual:
        left = self.left.copy()
        left.put(self.source, a, units)
        left.put(self.source, b, units)
        return left

    def _join(self, full: list[int]) -> None:
        """Full sets that share a node are full together."""
        joined = {self._part[node] for node in full}
        first = min(joined)
        self._part = [first if part in joined else part for part in self._part]
