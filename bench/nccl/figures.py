# SPDX-License-Identifier: Apache-2.0
"""What coll_nccl has measured, as ratios within a round, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from collectives.intervals import of_median

MOST, MOST_NS = 1.1, 100.0  # times a call of the C interface, and nanoseconds on top
LEAST_FUSED = 5.0  # times as fast as one by one


class Round(NamedTuple):
    """A line of coll_nccl: bytes of a call or number of calls, and nanoseconds of two ways."""

    key: int
    first: float
    second: float


@dataclass(frozen=True)
class Figure:
    """A ratio: its median over rounds and a 95 % interval of that, None where it is not known."""

    row: str
    key: int
    rounds: int
    ns: tuple[float, float]  # medians of the two ways
    ratio: float
    low: float | None
    high: float | None
    goal: str
    met: bool

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def read(printed: str) -> list[Round]:
    """Return the rounds of a program's lines."""
    split = (line.split() for line in printed.splitlines())
    return [Round(int(key), float(first), float(second)) for key, first, second in split]


def of_calls(row: str, rounds: Sequence[Round]) -> list[Figure]:
    """Return what a call through NCCL's interface takes, in calls of C, for each size."""
    found = []
    for key in dict.fromkeys(it.key for it in rounds):
        own = [it for it in rounds if it.key == key]
        ratios = [(it.second - MOST_NS) / it.first for it in own]
        goal = f"<= {MOST} with {MOST_NS:g} ns less"
        found.append(_figure(row, key, own, ratios, goal, median(ratios) <= MOST))
    return found


def of_groups(row: str, rounds: Sequence[Round], least: float) -> Figure:
    """Return how much faster a group is than its calls one by one."""
    ratios = [it.first / it.second for it in rounds]
    return _figure(row, rounds[0].key, rounds, ratios, f">= {least:g}", median(ratios) >= least)


def _figure(
    row: str, key: int, rounds: Sequence[Round], ratios: Sequence[float], goal: str, met: bool
) -> Figure:
    low, high = of_median(np.array(ratios))
    ns = (round(median(it.first for it in rounds), 1), round(median(it.second for it in rounds), 1))
    below, above = (round(it, 3) if np.isfinite(it) else None for it in (low, high))
    return Figure(row, key, len(rounds), ns, round(median(ratios), 3), below, above, goal, met)
