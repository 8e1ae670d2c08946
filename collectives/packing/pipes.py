# SPDX-License-Identifier: Apache-2.0
"""What ranks do on several trees at a time: each tree passes its chunks on, block behind block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from collectives.own import SELF, ScheduleBuilder
from collectives.packing.arborescences import Parents

# Round, whether it receives, the tree's number, whether it goes down, and what to write.
Step = tuple[int, bool, int, bool, Callable[[], None]]


@dataclass(frozen=True)
class Pipe:
    """A tree, and its chunks: ``blocks`` times ``shares`` of them, from ``first`` on."""

    parents: Parents
    first: int
    shares: int
    blocks: int

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each rank."""
        found: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(node)
        return tuple(map(tuple, found))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """How far each rank is from the root."""
        return depths(self.parents)

    @cached_property
    def height(self) -> int:
        """How far the farthest is."""
        return max(self.depths)

    def block(self, number: int) -> range:
        """Return the chunks that travel together."""
        first = self.first + number * self.shares
        return range(first, first + self.shares)


def depths(parents: Parents) -> tuple[int, ...]:
    """Return how far each node of a tree is from its root."""
    found = list[int]()
    for node in range(len(parents)):
        depth, at = 0, node
        while parents[at] >= 0:
            depth, at = depth + 1, parents[at]
        found.append(depth)
    return tuple(found)


def centred(parents: Parents) -> Parents:
    """Return the same tree with a root from which the farthest node is as near as can be."""
    return min((_turned(parents, root) for root in range(len(parents))), key=_height)


def _height(parents: Parents) -> int:
    return max(depths(parents))


def _turned(parents: Parents, root: int) -> Parents:
    turned, node, before = list(parents), root, -1
    while node >= 0:
        turned[node], before, node = before, node, turned[node]
    return tuple(turned)


def write(b: ScheduleBuilder, pipes: Sequence[Pipe], up: bool, down: bool) -> None:
    """Write a rank's program: up to the roots, down from them, or up and at once down again.

    A rank at depth d of a tree passes its block t up in round t + height - d; down in round t + d,
    or, behind the way up, t + height + d.
    """
    steps: list[Step] = []
    for number, pipe in enumerate(pipes):
        for t in range(pipe.blocks):
            if up:
                steps += _up(b, number, pipe, t)
            if down:
                steps += _down(b, number, pipe, t, pipe.height if up else 0)
    for *_, done in sorted(steps, key=lambda step: step[:4]):
        done()


def _up(b: ScheduleBuilder, number: int, pipe: Pipe, t: int) -> list[Step]:
    parent, children, chunks = pipe.parents[b.rank], pipe.children[b.rank], pipe.block(t)
    turn = t + pipe.height - pipe.depths[b.rank]
    steps: list[Step] = []
    if children:
        order = [SELF if rank == b.rank else rank for rank in sorted((b.rank, *children))]
        folded = (turn - 1, True, number, False)
        steps.append((*folded, lambda: b.recv_reduce(turn - 1, order, chunks)))
    if parent >= 0:
        steps.append((turn, False, number, False, lambda: b.send(turn, parent, chunks)))
    return steps


def _down(b: ScheduleBuilder, number: int, pipe: Pipe, t: int, behind: int) -> list[Step]:
    parent, children, chunks = pipe.parents[b.rank], pipe.children[b.rank], pipe.block(t)
    turn = t + behind + pipe.depths[b.rank]
    steps: list[Step] = []
    if parent >= 0:
        steps.append((turn - 1, True, number, True, lambda: b.recv(turn - 1, parent, chunks)))
    if children:
        steps.append((turn, False, number, True, lambda: b.send(turn, children, chunks)))
    return steps
