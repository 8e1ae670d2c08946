# SPDX-License-Identifier: Apache-2.0
"""Maximum flows between the nodes of a small graph, in whole numbers.

Edmonds & Karp, Theoretical Improvements in Algorithmic Efficiency for Network Flow Problems, JACM
19(2), 1972: always along a shortest path that has something left.
"""

from __future__ import annotations

from collections.abc import Sequence

Matrix = list[list[int]]


class Residual:
    """What is left of each arc of a graph: ``left[a][b]``.

    ``to[a]`` has the bits of all b that something is left to, ``into[b]`` those of all a that
    something is left from. A flow takes from the arcs of its way and gives to those back.
    """

    def __init__(self, left: Sequence[Sequence[int]]) -> None:
        """Begin with these capacities."""
        self.left = [list(row) for row in left]
        self.to = [_mask(row) for row in left]
        self.into = [_mask(column) for column in zip(*left, strict=True)]

    def copy(self) -> Residual:
        """Return another one, which flows of this one do not change."""
        made = Residual.__new__(Residual)
        made.left = [row[:] for row in self.left]
        made.to, made.into = self.to[:], self.into[:]
        return made

    def put(self, a: int, b: int, units: int) -> None:
        """Say what is left of an arc."""
        self.left[a][b] = units
        if units:
            self.to[a] |= 1 << b
            self.into[b] |= 1 << a
        else:
            self.to[a] &= ~(1 << b)
            self.into[b] &= ~(1 << a)

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
        if self.to[source] >> sink & 1:
            return [(source, sink)]
        last, seen, trail = self.into[sink], 1 << source, list[tuple[int, int]]()
        layers = [1 << source]
        for layer in layers:
            while layer:
                node = (layer & -layer).bit_length() - 1
                layer &= layer - 1
                found = self.to[node] & ~seen
                if not found:
                    continue
                trail.append((node, found))
                if found & last:
                    return _way_back(trail, bits(found & last)[0], sink)
                seen |= found
                layers.append(found)
        return []


def _way_back(trail: list[tuple[int, int]], end: int, sink: int) -> list[tuple[int, int]]:
    """Return the arcs to the sink from where the trail begins; it has who was found from where."""
    way = [(end, sink)]
    for node, found in reversed(trail):
        if found >> end & 1:
            way.append((node, end))
            end = node
    return way


def _mask(units: Sequence[int]) -> int:
    return sum(1 << other for other, one in enumerate(units) if one)


def bits(mask: int) -> list[int]:
    """Return the numbers of the bits that are set."""
    numbers = []
    while mask:
        low = mask & -mask
        numbers.append(low.bit_length() - 1)
        mask ^= low
    return numbers
