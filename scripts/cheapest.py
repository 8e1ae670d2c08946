# SPDX-License-Identifier: Apache-2.0
"""When an algorithm wins: where the library takes it, and where a network should.

The usual model of a network: a message costs alpha to start and beta for each byte. In a round a
rank sends its messages one after the other; meanwhile it receives, also one after the other. A
round lasts as long as its busiest rank. Folds and copies cost nothing. The unit of sizes is then
n0 = alpha / beta: the bytes that would travel in the time that a message takes to start.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import collectives as cl
from collectives._ffi import check, ffi, lib
from collectives.cli.sizes import format_size
from collectives.names import algorithm_index, kind_code

RANKS = (4, 5, 8, 16)
SIZES = [1 << bits for bits in range(31)]  # bytes of the vector


@dataclass(frozen=True)
class Cost:
    """A call with a vector of n bytes takes ``starts`` alpha + ``share`` n beta."""

    starts: int
    share: float


@cache
def cost(kind: str, name: str, p: int) -> Cost:
    """Count an algorithm's cost among ``p`` ranks."""
    shown = cl.schedule(name, p, kind)
    # By round, by rank and direction: messages and cells.
    rounds: dict[int, dict[tuple[int, bool], list[int]]] = defaultdict(
        lambda: defaultdict(lambda: [0, 0])
    )
    for rank, steps in enumerate(shown.ranks):
        for step in steps:
            sends = step.op == "send"
            peers = sum(peer >= 0 for peer in step.peers)
            cells = sum(part.cells for part in (step.source if sends else step.target))
            load = rounds[step.round][rank, sends]
            load[0] += peers
            load[1] += peers * cells
    starts = sum(max(messages for messages, _ in one.values()) for one in rounds.values())
    cells = sum(max(cells for _, cells in one.values()) for one in rounds.values())
    if kind == "barrier":
        return Cost(starts, 0.0)  # its messages are empty
    return Cost(starts, cells / (p if kind == "alltoall" else shown.chunks))


def cheapest(one: Cost, others: Iterable[Cost]) -> tuple[float, float] | None:
    """Return the least and the largest vector, in n0, for which nothing costs less; or None."""
    low, high = 0.0, math.inf
    for other in others:
        ahead, steeper = other.starts - one.starts, one.share - other.share
        if abs(steeper) < 1e-9:
            if ahead < 0:
                return None
        elif steeper > 0:
            high = min(high, ahead / steeper)
        else:
            low = max(low, ahead / steeper)
    return (low, high) if low < high else None


def in_a_network(algorithm: cl.Algorithm, p: int) -> str:
    """Say for which vectors an algorithm costs least of its kind among ``p`` ranks."""
    others = [a for a in cl.algorithms(algorithm.kind) if a.name != algorithm.name and a.fits(p)]
    mine = cost(algorithm.kind, algorithm.name, p)
    costs = {a.name: cost(a.kind, a.name, p) for a in others}
    found = cheapest(mine, costs.values())
    if found is None:
        return "never"
    low, high = (f"{n:.3g} n0" for n in found)
    words = _words(low if found[0] else "", high if math.isfinite(found[1]) else "")
    alike = sorted(name for name, other in costs.items() if other == mine)
    return words + (f", like {' and '.join(alike)}" if alike else "")


def on_one_machine(algorithm: cl.Algorithm, p: int) -> str:
    """Say for which vectors the library takes an algorithm if the caller does not choose."""
    index, kind = algorithm_index(algorithm.kind, algorithm.name), kind_code(algorithm.kind)
    chosen, mode = ffi.new("int32_t *"), ffi.new("int32_t *")
    taken = []
    for size in SIZES:
        check(lib.coll_choose(kind, p, size, chosen, mode))
        if chosen[0] == index:
            taken.append(size)
    if not taken:
        return "never"
    low = "" if taken[0] == SIZES[0] else format_size(taken[0] // 2)
    return _words(low, "" if taken[-1] == SIZES[-1] else format_size(taken[-1]))


def _words(low: str, high: str) -> str:
    if low and high:
        return f"{low} to {high}"
    return f"above {low}" if low else f"up to {high}" if high else "always"
