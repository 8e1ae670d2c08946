# SPDX-License-Identifier: Apache-2.0
"""Graphs to pack trees into: a known machine, and the bounds of any by trying everything."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

Links = dict[tuple[int, int], float]

# NVLinks of a DGX-1 with V100 GPUs, between GPUs numbered along the ring that has two everywhere.
_NAMES = (0, 3, 2, 1, 5, 6, 7, 4)
_NVLINKS = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2,
    (2, 6): 1, (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
}  # fmt: skip
NVLINK = 25e9


def dgx1(*gpus: int, without: tuple[int, int] | None = None) -> Links:
    """Return the NVLinks between these GPUs, which become ranks 0, 1, ...; by default all eight."""
    ranks = {gpu: rank for rank, gpu in enumerate(gpus or _NAMES)}
    return both_ways(
        {
            (ranks[a], ranks[b]): count * NVLINK
            for (a, b), count in _NVLINKS.items()
            if a in ranks and b in ranks and (a, b) != without
        }
    )


def both_ways(links: Links) -> Links:
    """Return each link and the one back."""
    return links | {(b, a): rate for (a, b), rate in links.items()}


def matrix(links: Links) -> list[list[int]]:
    """Return whole capacities by sender and receiver."""
    p = 1 + max(map(max, links))
    return [[int(links.get((a, b), 0)) for b in range(p)] for a in range(p)]


def sets(p: int) -> Iterator[set[int]]:
    """Yield every set of ranks, but none and all."""
    for size in range(1, p):
        yield from map(set, combinations(range(p), size))


def leaving(units: list[list[int]], inside: set[int]) -> int:
    """Return what goes out of a set of ranks."""
    return sum(units[a][b] for a in inside for b in range(len(units)) if b not in inside)


def partitions(p: int) -> Iterator[list[int]]:
    """Yield every partition, as the number of the part of each rank."""
    if p == 0:
        yield []
        return
    for parts in partitions(p - 1):
        for part in range(max(parts, default=-1) + 2):
            yield [*parts, part]


def strongest(units: list[list[int]]) -> Fraction:
    """Return min c(P) / (|P| - 1) over all partitions P, with the weaker way of each link."""
    p = len(units)
    found = []
    for parts in partitions(p):
        between = sum(
            min(units[a][b], units[b][a])
            for a, b in combinations(range(p), 2)
            if parts[a] != parts[b]
        )
        if len(set(parts)) > 1:
            found.append(Fraction(between, len(set(parts)) - 1))
    return min(found)


def bound(kind: str, links: Links, root: int = 0) -> Fraction:
    """Return the highest rate, by trying every cut or partition."""
    units = matrix(links)
    p = len(units)
    if kind == "allreduce":
        return strongest(units)
    if kind in ("reduce", "reduce_scatter"):
        units = [list(column) for column in zip(*units, strict=True)]
    if kind in ("broadcast", "reduce"):
        return Fraction(min(leaving(units, inside) for inside in sets(p) if root in inside))
    return min(Fraction(p * leaving(units, inside), len(inside)) for inside in sets(p))
