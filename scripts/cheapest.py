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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import collectives as cl
from collectives._ffi import check, ffi, lib
from collectives.cli.sizes import format_ranks, format_size
from collectives.names import kind_code

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

RANKS = (4, 5, 8, 16)
MOST_SHOWN = 64  # ranks; the rules change below
# Bytes of the vector: powers of two, at which most rules change, and what lies between.
SIZES = sorted([1 << bits for bits in range(31)] + [3 << bits for bits in range(29)])


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
        return f"never: {dominating(mine, costs)}"
    low, high = (f"{n:.3g} n0" for n in found)
    words = _words(low if found[0] else "", high if math.isfinite(found[1]) else "")
    alike = sorted(name for name, other in costs.items() if other == mine)
    return words + (f", like {' and '.join(alike)}" if alike else "")


def dominating(mine: Cost, costs: Mapping[str, Cost]) -> str:
    """Say which of the others cost less, whatever the vector."""
    better = {
        name: one
        for name, one in costs.items()
        if one.starts <= mine.starts and one.share <= mine.share + 1e-9
    }
    if better:
        best = min(better, key=lambda name: (better[name].share, better[name].starts))
        return f"{best} costs less"
    winners = [name for name, one in costs.items() if cheapest(one, costs.values())]
    return f"{' or '.join(winners)} costs less"


def on_one_machine(algorithm: cl.Algorithm, p: int) -> str:
    """Say for which vectors the library takes an algorithm if the caller does not choose."""
    taken = [size for size in SIZES if chosen(algorithm.kind, p, size) == algorithm.name]
    if not taken:
        return "never"
    first = SIZES.index(taken[0])
    low = format_size(SIZES[first - 1]) if first else ""
    return _words(low, "" if taken[-1] == SIZES[-1] else format_size(taken[-1]))


@cache
def _names() -> list[str]:
    return [str(algorithm.name) for algorithm in cl.algorithms()]


@cache
def chosen(kind: str, p: int, size: int) -> str:
    """Return the algorithm that native/select/choose.cc takes for a vector of ``size`` bytes."""
    index, mode = ffi.new("int32_t *"), ffi.new("int32_t *")
    check(lib.coll_choose(kind_code(kind), p, size, index, mode))
    return _names()[int(index[0])]


def rules(kind: str) -> list[tuple[str, str]]:
    """Return which algorithms are taken on one machine: (numbers of ranks, names and bytes)."""
    known = {a.name: a for a in cl.algorithms(kind)}
    groups: list[tuple[list[int], str]] = []
    for p in range(1, MOST_SHOWN + 1):
        names = dict.fromkeys(chosen(kind, p, size) for size in SIZES)
        words = ", ".join(
            name if (range_ := on_one_machine(known[name], p)) == "always" else f"{name} {range_}"
            for name in names
        )
        if groups and groups[-1][1] == words:
            groups[-1][0].append(p)
        else:
            groups.append(([p], words))
    if len(groups) == 1:
        return [("any", words)]
    last = groups.pop()
    shown = [(format_ranks(ranks).replace(":", " to "), words) for ranks, words in groups]
    return [*shown, (f"{last[0][0]} and more", last[1])]


def neighbours(kind: str, name: str, p: int) -> int:
    """Return to how many others the most sociable rank sends."""
    ranks = cl.schedule(name, p, kind).ranks
    return max(len({q for s in steps if s.op == "send" for q in s.peers}) for steps in ranks)


def section(algorithm: cl.Algorithm, table: Table) -> str:
    """Say for which vectors an algorithm is the best of its kind, for some numbers of ranks."""
    kind, name = algorithm.kind, algorithm.name
    others = len(cl.algorithms(kind)) - 1
    if not others:
        return f"It is the only algorithm for {kind} as yet."
    fitting = [p for p in RANKS if algorithm.fits(p)]
    rows = [[str(p), on_one_machine(algorithm, p), in_a_network(algorithm, p)] for p in fitting]
    most = fitting[-1]
    return (
        f"Against the {others} others for {kind}, by bytes of the vector:\n\n"
        f"{table(['ranks', 'taken on one machine', 'costs least in a model of a network'], rows)}"
        "\n\n"
        "Taken on one machine: what `algorithm=None` takes, by the rules of "
        "[choose.cc](../../native/select/choose.cc), which were measured. The model: a message "
        "costs alpha to start and beta for each byte, a rank sends one message at a time and "
        "receives one, a round lasts as long as its busiest rank; counted on the schedules, as "
        "they are cut here; n0 = alpha / beta. It leaves out contention for links and memory, "
        "distance, folds, messages that overlap, and finer pipelines, which may turn the order "
        f"round: here a rank sends to at most {neighbours(kind, name, most)} of {most - 1} others."
    )


def _words(low: str, high: str) -> str:
    if low and high:
        return f"{low} to {high}"
    return f"above {low}" if low else f"up to {high}" if high else "always"
