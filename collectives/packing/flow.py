# SPDX-License-Identifier: Apache-2.0
"""Maximum flows between the nodes of a small graph, in whole numbers.

Edmonds & Karp, Theoretical Improvements in Algorithmic Efficiency for Network Flow Problems, JACM
19(2), 1972: always along a shortest path that has something left.
"""

from __future__ import annotations

from collections.abc import Sequence

Matrix = list[list[int]]


class Residual:
    """What is left of each arc of a graph, ``left[a][b]``, and ``to[a]``, the bits of all such b.

    A flow takes it from the arcs of its way and gives it to those back.
    """

    def __init__(self, left: Sequence[Sequence[int]]) -> None:
        """Begin with these capacities."""
        self.left = [list(row) for row in left]
        self.to = [sum(1 << b for b, units in enumerate(row) if units) for row in left]

    def copy(self) -> Residual:
        """Return another one, which flows of this one do not change."""
        made = Residual.__new__(Residual)
        made.left = [row[:] for row in self.left]
        made.to = self.to[:]
        return made

    def put(self, a: int, b: int, units: int) -> None:
        """Say what is left of an arc."""
        self.left[a][b] = units
        bit = 1 << b
        self.to[a] = self.to[a] | bit if units else self.to[a] & ~bit

    def add(self, a: int, b: int, units: int) -> None:
        """Add to what is left of an arc, or take from it."""
        self.put(a, b, self.left[a][b] + units)

    def push(self, source: int, sink: int, most: int) -> int:
        """Let a largest flow of at most so many units run; return how many did."""
        pushed = 0
        while pushed < most:
            way = self._shortest(source, sink)
            if not way:
                break
            units = min(most - pushed, min(self.left[a][b] for a, b in way))
            for a, b in way:
                self.add(a, b, -units)
                self.add(b, a, units)
            pushed += units
        return pushed

    def reached(self, source: int) -> int:
        """Return the bits of the nodes that a further flow would reach, the source included."""
        seen, front = 1 << source, [source]
        for node in front:
            found = self.to[node] & ~seen
            seen |= found
            front += bits(found)
        return seen

    def _shortest(self, source: int, sink: int) -> list[tuple[int, int]]:
        """Return the arcs of a shortest way, the last first; none where there is no way."""
        before = {source: source}
        seen, front = 1 << source, [source]
        for node in front:
            if self.to[node] >> sink & 1:
                way = [(node, sink)]
                while node != source:
                    way.append((before[node], node))
                    node = before[node]
                return way
            found = self.to[node] & ~seen
            seen |= found
            for other in bits(found):
                before[other] = node
                front.append(other)
        return []


def bits(mask: int) -> list[int]:
    """Return the numbers of the bits that are set."""
    numbers = []
    while mask:
        low = mask & -mask
        numbers.append(low.bit_length() - 1)
        mask ^= low
    return numbers
