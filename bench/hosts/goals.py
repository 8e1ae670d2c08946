# SPDX-License-Identifier: Apache-2.0
"""What the link allows, and the goals as data: shares of it, and ratios to the best peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.hosts.records import Record, Spread
from bench.peers.statistics import INCOMPLETE, MET, MISSED
from collectives.cli.sizes import UNITS

K, M = UNITS["K"], UNITS["M"]
HOSTS, MBIT = 4, 1000.0  # what the goals are set for
LEAST_ROUNDS = 3  # fewer say nothing
VOID = "void"


@dataclass(frozen=True)
class Goal:
    """What is asked of a collective on vectors of `least` to `most` bytes.

    `share`: of the lower bound in the measured time. `ratio`: the best peer's time over ours.
    """

    kind: str
    least: int
    most: int
    share: float | None = None
    ratio: float | None = None

    def covers(self, record: Record) -> bool:
        """Whether the goal looks at a cell, on these links."""
        cell = record.cell
        here = (cell.kind, cell.ranks, record.mbit) == (self.kind, HOSTS, MBIT)
        return here and self.least <= cell.nbytes <= self.most

    @property
    def text(self) -> str:
        """What is asked, as the table has it."""
        return f">= {self.share:.2f}" if self.share is not None else f"ratio >= {self.ratio:.2f}"


ENDLESS = UNITS["T"]
GOALS = (
    Goal("allreduce", 1 * K, 1 * K, ratio=1.5),
    Goal("allreduce", 64 * K, 64 * K, share=0.80),
    Goal("allreduce", 256 * K, 256 * K, share=0.90),
    Goal("allreduce", 1 * M, ENDLESS, share=0.94),
    Goal("reduce_scatter", 256 * K, 256 * K, share=0.88),
    Goal("reduce_scatter", 1 * M, ENDLESS, share=0.93),
    Goal("allgather", 256 * K, 256 * K, share=0.88),
    Goal("allgather", 1 * M, ENDLESS, share=0.93),
)


@dataclass(frozen=True)
class Judged:
    """A goal and a cell. `found`: the median share or ratio with the rounds' extremes."""

    goal: Goal
    record: Record
    found: Spread | None
    verdict: str


def judge(records: Sequence[Record]) -> list[Judged]:
    """Judge every cell by the goals that cover it."""
    return [_judged(goal, record) for record in records for goal in GOALS if goal.covers(record)]


def _judged(goal: Goal, record: Record) -> Judged:
    ours = record.ours()
    shares = record.share(ours) if ours is not None else None
    found, asked = (shares, goal.share) if goal.ratio is None else (record.ratio(), goal.ratio)
    assert asked is not None
    if record.void() is not None:
        return Judged(goal, record, found, VOID)
    if found is None or found.count < LEAST_ROUNDS:
        return Judged(goal, record, found, INCOMPLETE)
    return Judged(goal, record, found, MET if found.median >= asked else MISSED)
