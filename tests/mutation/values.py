# SPDX-License-Identifier: Apache-2.0
"""Numbers that tell contributions apart, and the sums of them that remember how they were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import NamedTuple

from tests.mutation.words import BARRIER, Outline

PRIME = 2**61 - 1
SPREAD = 0x9E3779B97F4A7C15


class WrongError(Exception):
    """The schedule or plan does not do what it should; the text says what was seen."""


class Element(NamedTuple):
    """A number; the tree that made it, the same for a + b and b + a; its leaves in order."""

    number: int
    tree: int
    leaves: tuple[int, ...]


@dataclass(frozen=True)
class Trees:
    """What is claimed of the summation trees."""

    same_on_ranks: bool = False
    same_in_vector: bool = False
    rank_order: bool = False


class Arithmetic:
    """Sums of integers modulo a prime, so that a mean is exact; for a barrier, unions."""

    def __init__(self, outline: Outline, salt: int) -> None:
        self.outline = outline
        self._salt = salt
        self._trees: dict[tuple[int, ...], int] = {}
        self._contributions: dict[tuple[int, ...], Element] = {}
        self._results: dict[tuple[int, ...], int] = {}
        self._garbage: Iterator[int] = count(1)
        self._inverse = pow(outline.p, -1, PRIME)

    def contribution(self, *key: int) -> Element:
        """The operand (rank, chunk, place ...): a number that no other, or sum of others, has."""
        known = self._contributions.get(key)
        if known is None:
            rank = key[0]
            number = 1 << rank if self.outline.kind == BARRIER else self._number(*key)
            known = self._contributions[key] = Element(number, self._tree(-1, rank), (rank,))
        return known

    def garbage(self) -> Element:
        """What was never seen before."""
        serial = next(self._garbage)
        return Element((self._salt + serial * SPREAD) % PRIME, -serial, ())

    def add(self, a: Element, b: Element) -> Element:
        union = self.outline.kind == BARRIER
        number = a.number | b.number if union else (a.number + b.number) % PRIME
        low, high = sorted((a.tree, b.tree))
        return Element(number, self._tree(low, high), a.leaves + b.leaves)

    def fold(self, items: Sequence[Element], balanced: bool) -> Element:
        """((a + b) + c) + d, or split at the largest power of two below the number of items."""
        if len(items) == 1:
            return items[0]
        half = 1 << (len(items) - 1).bit_length() - 1 if balanced else len(items) - 1
        left, right = self.fold(items[:half], balanced), self.fold(items[half:], balanced)
        return self.add(left, right)

    def mean(self, total: Element) -> Element:
        """A total divided by the number of ranks."""
        number = total.number * self._inverse % PRIME
        return Element(number, self._tree(-3, total.tree), total.leaves)

    def result(self, rank: int, *place: int) -> int:
        """The number that a rank must get for (chunk, place ...), before any division."""
        if self.outline.kind == BARRIER:
            return (1 << self.outline.p) - 1
        ranks = self.outline.contributors(rank, place[0])
        key = (ranks.start, ranks.stop, *place)
        if key not in self._results:
            total = sum(self.contribution(r, *place).number for r in ranks)
            self._results[key] = total % PRIME
        return self._results[key]

    def _number(self, *key: int) -> int:
        return hash((self._salt, *key)) % PRIME

    def _tree(self, *key: int) -> int:
        return self._trees.setdefault(key, len(self._trees))


def hold_to(claimed: Trees, outline: Outline, results: dict[tuple[int, ...], Element]) -> None:
    """Compare the trees of all results, keyed by (rank, chunk, place in the chunk ...).

    Only sums of the same operands can be made alike: those of a scan are one rank's alone.
    """
    if not outline.sums:
        return
    at_place: dict[tuple[range, tuple[int, ...]], set[int]] = {}
    in_vector: dict[range, set[int]] = {}
    for (rank, *place), element in results.items():
        ranks = outline.contributors(rank, place[0])
        at_place.setdefault((ranks, tuple(place)), set()).add(element.tree)
        in_vector.setdefault(ranks, set()).add(element.tree)
    if claimed.same_on_ranks and any(len(found) > 1 for found in at_place.values()):
        raise WrongError("the summation tree differs between ranks")
    if claimed.same_in_vector and any(len(found) > 1 for found in in_vector.values()):
        raise WrongError("the summation tree differs along the vector")
    if claimed.rank_order and any(
        a > b for element in results.values() for a, b in pairwise(element.leaves)
    ):
        raise WrongError("the sum is not in rank order")
