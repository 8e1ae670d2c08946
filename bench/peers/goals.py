# SPDX-License-Identifier: Apache-2.0
"""The goals, as data, and the judgement of each in each placement.

A goal holds a reference over the time of our call: the best peer, Gloo, or a limit probed in the
same run. It asks for a least ratio at every size, for a geometric mean over sizes, or for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.limits.floors import OF_FLOOR
from bench.peers.cells import PLACEMENTS, Cell, Record, Sheet
from bench.peers.libraries import OURS, TeamName
from bench.peers.statistics import (
    INCOMPLETE,
    UNDECIDED,
    Estimate,
    Values,
    estimate,
    geometric_mean,
    verdict,
    worst,
)
from collectives.cli.sizes import UNITS, format_size, parse_sizes

K, M = UNITS["K"], UNITS["M"]
LADDER = parse_sizes("8:128M,256M")
RIVAL, GLOO, STREAMING, YIELD = "best peer", "Gloo", "non-temporal copy", "sched_yield"

NOT_SEEN, NOT_MEASURED = "not seen", "not measured"
SOUGHT_S = 1200  # seconds; after fewer a placement is not one that does not come
BRIEFLY = "not seen yet"
LEAST_ROUNDS = 15  # fewer say nothing about a size


@dataclass(frozen=True)
class Goal:
    """What is asked of our calls (`variant`) on sizes from `least` to `most` bytes.

    `every`: the least ratio at each size. With `of_limit` it is lowered, where the machine does
    not allow so much, to that share of what an array copied once at the probed rate would reach.
    With `of_floor` it is lowered to that share of what the best loop written by hand reaches, timed
    in the same run.
    `mean`: the geometric mean, by placement.
    """

    kind: str
    dtype: str
    ranks: int
    least: int
    most: int
    variant: str = "ordinary"
    against: str = RIVAL
    every: float | None = None
    of_limit: float | None = None
    of_floor: float | None = None
    mean: tuple[float, float] | None = None

    @property
    def title(self) -> str:
        """The goal in words."""
        variant = "" if self.variant == "ordinary" else f" {self.variant}"
        if self.against == YIELD:
            variant += " back to back"
        sizes = format_size(self.least)
        if self.most != self.least:
            sizes += f" to {format_size(self.most)}"
        return f"{self.kind}{variant} {self.dtype}, {self.ranks} ranks, {sizes}: {self.against}"

    def cells(self) -> list[Cell]:
        """Return the cells of the ladder of sizes that it is judged on."""
        sizes = [size for size in LADDER if self.least <= size <= self.most]
        return [Cell(self.kind, self.dtype, self.ranks, size) for size in sizes]

    def covers(self, cell: Cell) -> bool:
        """Whether the goal looks at a cell."""
        same = (cell.kind, cell.dtype, cell.ranks) == (self.kind, self.dtype, self.ranks)
        return same and self.least <= cell.nbytes <= self.most


_ALLREDUCE = ("allreduce", "float32", 2)
_MOVING = ("reduce_scatter", "allgather", "broadcast", "alltoall")
_UNEQUAL = ("reduce_scatterv", "allgatherv", "alltoallv")

GOALS = (
    Goal(*_ALLREDUCE, 8, 256 * M, every=0.95, mean=(1.5, 1.5)),
    Goal(*_ALLREDUCE, 64 * K, 256 * M, "symmetric", every=2, of_limit=0.9, mean=(2.5, 3.5)),
    Goal(*_ALLREDUCE, 16 * M, 256 * M, "symmetric", against=STREAMING, every=0.9),
    Goal(*_ALLREDUCE, 8, 4 * K, against=GLOO, every=100),
    Goal(*_ALLREDUCE, 8, 256 * M, against=GLOO, every=2, mean=(12, 12)),
    Goal("allreduce", "bfloat16", 2, 8, 256 * M, every=3, mean=(8, 8)),
    Goal("allreduce", "float16", 2, 8, 256 * M, every=0.95, mean=(1.5, 1.5)),
    *(
        Goal(kind, "float32", 2, 8, 32 * M, every=0.95, of_floor=OF_FLOOR, mean=(1.2, 1.2))
        for kind in _MOVING
    ),
    *(Goal(kind, "float32", 2, 8, 32 * M, every=0.95, mean=(1.2, 1.2)) for kind in _UNEQUAL),
    *(Goal("allreduce", "float32", ranks, 8, 8 * M, every=0.95) for ranks in (4, 8)),
    Goal("allreduce", "float32", 8, 8, 8, against=YIELD, every=1 / 20),
    Goal(*_ALLREDUCE, 8, 4 * K, "torch", against=GLOO, every=10),
    Goal(*_ALLREDUCE, 64 * K, 256 * M, "torch", against=GLOO, every=1.2, mean=(3, 3)),
    Goal("allreduce", "bfloat16", 2, 8, 256 * M, "torch", against=GLOO, mean=(5, 5)),
    Goal("reduce_scatter", "float32", 2, 8, 32 * M, "torch", against=GLOO, mean=(4, 4)),
    Goal("allgather", "float32", 2, 8, 32 * M, "torch", against=GLOO, mean=(3, 3)),
)


@dataclass(frozen=True)
class Size:
    """One size of a goal that asks for a least ratio."""

    nbytes: int
    ratio: Estimate
    asked: float

    @property
    def verdict(self) -> str:
        """Met, missed or undecided; incomplete with too few rounds."""
        few = self.ratio.count < LEAST_ROUNDS
        return INCOMPLETE if few else verdict(self.ratio, self.asked)

    def share(self) -> float:
        """Return how far the ratio is above what is asked."""
        return self.ratio.value / self.asked


@dataclass(frozen=True)
class Judged:
    """One goal in one placement. `lowest`: the size with the smallest share of what is asked."""

    goal: Goal
    placement: str
    verdict: str
    sizes: int = 0
    lowest: Size | None = None
    judged: tuple[Size, ...] = ()
    mean: Estimate | None = None

    def at(self, verdict: str) -> list[int]:
        """Return the sizes with a verdict, in bytes."""
        return [size.nbytes for size in self.judged if size.verdict == verdict]


def cells_of_goals(variants: Sequence[str]) -> list[Cell]:
    """Return all cells on which goals of these variants of our calls are judged, each once."""
    asked = [goal for goal in GOALS if goal.variant in variants]
    return list(dict.fromkeys(cell for goal in asked for cell in goal.cells()))


def wants_flow(cell: Cell, team: TeamName) -> bool:
    """Whether a goal looks at a team's calls back to back, one right behind the other.

    Ranks that share cores cannot begin a call together: what a call takes that has the cores to
    itself is what one takes in a row of them.
    """
    return any(
        goal.against == YIELD and goal.covers(cell) and team == TeamName(OURS, goal.variant)
        for goal in GOALS
    )


def wants_floor(cell: Cell) -> bool:
    """Whether a goal allows a cell what loops written by hand take."""
    return any(goal.of_floor is not None and goal.covers(cell) for goal in GOALS)


def judge(records: Sequence[Record]) -> list[Judged]:
    """Judge every goal in both placements."""
    return [_judge(goal, place, records) for goal in GOALS for place in PLACEMENTS]


def unsure(record: Record, place: str) -> bool:
    """Whether more rounds are wanted: the rival's ratio is wide, or one that a goal looks at."""
    sheet, nbytes = record.sheets[place], record.cell.nbytes
    rival = sheet.rival()
    found = [sheet.ratio(rival, ours) for ours in sheet.variants()]
    if any(ratio is not None and ratio.wide for ratio in found):
        return True
    return any(
        verdict(estimate(values), asked(goal, sheet, nbytes)) == UNDECIDED
        for goal in GOALS
        if goal.every is not None and goal.covers(record.cell)
        and len(values := reference(goal, sheet, nbytes))
    )  # fmt: skip


def reference(goal: Goal, sheet: Sheet, nbytes: int) -> Values:
    """Return the ratios of a goal in a sheet, one per round; empty without the measurements."""
    ours = TeamName(OURS, goal.variant)
    if goal.against in (RIVAL, GLOO):
        peer = sheet.rival() if goal.against == RIVAL else sheet.best(["gloo"])
        return sheet.ratios(peer, ours) if peer is not None else np.empty(0)
    measured = sheet.flows if goal.against == YIELD else sheet.blocks
    times = np.array(list(measured.get(ours, {}).values()))
    rate, wait = sheet.limit("streaming"), sheet.limit("yield")
    limit = wait if goal.against == YIELD else nbytes / rate if rate else None
    return np.empty(0) if limit is None else limit / 1e3 / times


def asked(goal: Goal, sheet: Sheet, nbytes: int) -> float:
    """Return the least ratio that a goal asks of a sheet."""
    assert goal.every is not None
    rival = sheet.rival()
    time = sheet.time(rival) if rival is not None else None
    if time is None:
        return goal.every
    allowed = [goal.every]
    rates = [rate for name in ("copy", "streaming", "peer") if (rate := sheet.limit(name))]
    if goal.of_limit is not None and rates:
        allowed.append(goal.of_limit * time / (nbytes / max(rates) / 1e3))
    floor = sheet.floor()
    if goal.of_floor is not None and floor is not None:
        allowed.append(goal.of_floor * time / floor)
    return min(allowed)


def _judge(goal: Goal, place: str, records: Sequence[Record]) -> Judged:
    ours = TeamName(OURS, goal.variant)
    measured = [record for record in records if goal.covers(record.cell)]
    found = [
        (record.cell.nbytes, record.sheets[place], values)
        for record in measured
        if len(values := reference(goal, record.sheets[place], record.cell.nbytes))
    ]
    if not found:
        here = any(ours in record.sheets[place].blocks for record in measured)
        anywhere = any(ours in s.blocks for record in measured for s in record.sheets.values())
        if here or not anywhere:
            return Judged(goal, place, NOT_MEASURED)
        sought = max(record.seconds for record in measured)
        return Judged(goal, place, NOT_SEEN if sought >= SOUGHT_S else BRIEFLY)
    enough = sum(len(values) >= LEAST_ROUNDS for *_, values in found)
    judged = Judged(goal, place, INCOMPLETE, enough)
    if goal.every is not None:
        sizes = [
            Size(nbytes, estimate(values), asked(goal, sheet, nbytes))
            for nbytes, sheet, values in found
        ]
        judged = replace(judged, lowest=min(sizes, key=Size.share), judged=tuple(sizes))
    if goal.mean is not None:
        judged = replace(judged, mean=geometric_mean([values for *_, values in found]))
    return replace(judged, verdict=_verdict(judged, place))


def _verdict(judged: Judged, place: str) -> str:
    """Join the verdicts on sizes and, once all are there, on the mean."""
    verdicts = [size.verdict for size in judged.judged]
    if judged.sizes < len(judged.goal.cells()):
        verdicts.append(INCOMPLETE)
    elif judged.mean is not None and judged.goal.mean is not None:
        verdicts.append(verdict(judged.mean, judged.goal.mean[PLACEMENTS.index(place)]))
    return worst(verdicts)
