# SPDX-License-Identifier: Apache-2.0
"""Guide lines that a library should keep of itself, measured: no collective slower than its parts.

Träff, Gropp & Thakur, Self-Consistent MPI Performance Guidelines, IEEE Transactions on Parallel and
Distributed Systems 21(5), 2010.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from collectives.intervals import of_median
from collectives.tuning.installed import chosen
from collectives.tuning.race import Buffers, Race, Runner, Seconds
from collectives.tuning.table import Choice

if TYPE_CHECKING:
    from collectives.communicator import Communicator

SIZES = (8, 1024, 16 << 10, 128 << 10, 1 << 20, 8 << 20)
KINDS = ("allreduce", "reduce", "broadcast", "reduce_scatter", "allgather", "barrier")
ROUNDS = 40
SLACK = 1.05  # times as long as its parts a collective may take
Times = dict[tuple[str, int], Seconds]
# A collective, and what does the same one after the other.
PARTS = (
    ("allreduce", ("reduce", "broadcast")),
    ("allreduce", ("reduce_scatter", "allgather")),
)


@dataclass(frozen=True)
class Guideline:
    """One rule at one size: the ratio of both sides, 1 or less where it is kept, and its interval.

    ``verdict`` is "kept", "broken" (beyond doubt by more than 5 %) or "unsure".
    """

    rule: str
    nbytes: int
    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """What comes of it."""
        if self.low > SLACK:
            return "broken"
        return "kept" if self.high <= SLACK else "unsure"


def measured(comm: Communicator, sizes: Sequence[int] = SIZES) -> list[Guideline]:
    """Measure the guide lines. Every rank must call it; all get the same."""
    found: list[Guideline] = []
    with comm.dup() as apart:
        for below, nbytes in zip((None, *sizes), sizes, strict=False):
            times = _times(apart, below, nbytes)
            here = {kind: times[kind, nbytes] for kind in KINDS}
            for whole, parts in PARTS:
                name = " + ".join(parts)
                together = times[name, nbytes]
                found.append(_of(f"{whole} <= {name}", nbytes, here[whole] / together))
            if below is None:
                rule = f"barrier <= allreduce of {nbytes} bytes"
                found.append(_of(rule, nbytes, here["barrier"] / here["allreduce"]))
                continue
            for kind in KINDS[:-1]:
                rule = f"{kind} of {below} bytes <= of more"
                found.append(_of(rule, nbytes, times[kind, below] / here[kind]))
    for p in range(2, comm.size):
        found += _one_more(comm, p, sizes)
    return found


def _one_more(comm: Communicator, p: int, sizes: Sequence[int]) -> list[Guideline]:
    """Return whether p ranks take no longer than p + 1, of which one could have nothing to say."""
    found = []
    more = comm.subgroup(range(p + 1))
    fewer = comm.subgroup(range(p))
    for nbytes in sizes:
        taken = np.zeros((2, ROUNDS))
        vectors = np.ones(max(nbytes // 4, 1), np.float32)
        for turn in range(2 * ROUNDS):
            which = turn % 2 if turn // 2 % 2 == 0 else 1 - turn % 2
            group = (fewer, more)[which]
            comm.barrier()
            if group is not None:
                begin = time.perf_counter()
                group.allreduce(vectors, op="max")
                taken[which, turn // 2] = time.perf_counter() - begin
        comm.allreduce(taken, op="max")
        rule = f"allreduce among {p} ranks <= among {p + 1}"
        found.append(_of(rule, nbytes, taken[0] / taken[1]))
    for group in (more, fewer):
        if group is not None:
            group.close()
    return found


def _times(comm: Communicator, below: int | None, nbytes: int) -> Times:
    """Return the seconds of each collective at both sizes, round by round."""
    sizes = [nbytes] if below is None else [below, nbytes]
    held = [Buffers(kind, size, comm.size) for size in sizes for kind in KINDS]
    runners: list[Runner] = []
    for buffers, (size, kind) in zip(held, product(sizes, KINDS), strict=True):
        choice = Choice(kind, size, "") if kind == "barrier" else chosen(comm, kind, size)[0]
        choice = replace(choice, nbytes=size)
        runners.append(Runner(comm, choice, buffers, comm._choices))
    ready = {(runner.choice.kind, runner.choice.nbytes): runner for runner in runners}
    pairs = {
        (" + ".join(parts), nbytes): _InTurn([ready[part, nbytes] for part in parts])
        for _, parts in PARTS
    }
    race = Race(comm, [*runners, *pairs.values()], _Together(held), alone=True)
    race.rounds(ROUNDS)
    return {name: np.array(race.samples[id(one)]) for name, one in {**ready, **pairs}.items()}


class _InTurn(Runner):
    """Several collectives, each once in a call: in rows of their own, rooted ones would overlap."""

    def __init__(self, runners: Sequence[Runner]) -> None:
        self.choice = runners[0].choice
        calls = [runner.call for runner in runners]
        self.call = lambda: [call() for call in calls]


class _Together(Buffers):
    """The buffers of several collectives, which are all touched between two calls."""

    def __init__(self, held: Sequence[Buffers]) -> None:
        self.large, self._held = held[-1].large, held

    def touch(self) -> None:
        for one in self._held:
            one.touch()


def _of(rule: str, nbytes: int, ratios: Seconds) -> Guideline:
    logs: Seconds = np.log(ratios)
    low, high = of_median(logs)
    middle = float(np.median(logs))
    return Guideline(rule, nbytes, *(float(np.exp(log)) for log in (middle, low, high)))
