# SPDX-License-Identifier: Apache-2.0
"""The figures of a job, and what is asked of them. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.regret.document import Row, Team

# A table is for one number of ranks. Where another one comes, the library's rules choose for it
# (and may the model): that is what these, which get no table, stand for.
HELD_OUT_RANKS = (3, 5)

Figures = dict[str, float]


@dataclass(frozen=True)
class Goal:
    """What is asked of a figure: ``group`` and ``name`` of a summary, at most ``bound``."""

    group: str
    name: str
    bound: float
    held_out_ranks: bool = False  # of numbers of ranks without a table, else of those with one


GOALS = (
    Goal("tuned", "mean", 1.03),
    Goal("tuned", "p99", 1.10),
    Goal("tuned", "max", 1.20),
    Goal("held out", "max", 1.30),
    Goal("rule", "max", 1.30, held_out_ranks=True),
    Goal("model", "mean", 1.15),
    Goal("model", "mean", 1.15, held_out_ranks=True),
)
UNDECIDED_SHARE = 0.10  # of the cells: fewer must be undecided


@dataclass(frozen=True)
class Verdict:
    """A figure beside its goal. ``met``: None where nothing is asked, or there is no figure."""

    group: str
    name: str
    value: float | None
    bound: float | None

    @property
    def met(self) -> bool | None:
        """Whether it is as asked."""
        if self.value is None or self.bound is None:
            return None
        return self.value <= self.bound


def figures(regrets: Sequence[float]) -> Figures:
    """Return the geometric mean, the 99th percentile and the largest of regrets."""
    if not regrets:
        return {"cells": 0}
    ordered = sorted(regrets)
    return {
        "cells": len(ordered),
        "mean": math.exp(sum(map(math.log, ordered)) / len(ordered)),
        "p99": ordered[max(math.ceil(0.99 * len(ordered)) - 1, 0)],
        "max": ordered[-1],
    }


def _by(rows: Sequence[Row], way: str, held_out: bool | None = None) -> Figures:
    return figures(
        [
            row.ways[way].ratio
            for row in rows
            if way in row.ways and held_out in (None, row.held_out)
        ]
    )


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the figures of what was decided.

    "tuned" and "held out" are those of the table, at sizes that were tuned and at others; "rule"
    and "model", which know no sizes, those of all.
    """
    clear = [row for row in rows if not row.undecided]
    return {
        "undecided": len(rows) - len(clear),
        "of": len(rows),
        "tuned": _by(clear, "tuned", held_out=False),
        "held out": _by(clear, "tuned", held_out=True),
        "rule": _by(clear, "rule"),
        "model": _by(clear, "model"),
    }


def held_out_ranks(teams: Sequence[Team]) -> dict[str, Any]:
    """Return the figures of all numbers of ranks that have no table, together."""
    apart = [team for team in teams if not team.tabled]
    found = summary([row for team in apart for row in team.rows])
    return {
        "ranks": [team.title for team in apart],
        **{key: found[key] for key in ("undecided", "of", "rule", "model")},
    }


def verdicts(team: Team) -> dict[tuple[str, str], Verdict]:
    """Return every figure of a job by group and name, with its goal where there is one."""
    found = summary(team.rows)
    asked = {(g.group, g.name): g.bound for g in GOALS if g.held_out_ranks != team.tabled}
    return {
        (group, name): Verdict(group, name, found[group].get(name), asked.get((group, name)))
        for group in ("tuned", "held out", "rule", "model")
        for name in ("mean", "p99", "max")
    }


def few_undecided(team: Team) -> bool:
    """Tell whether few enough of the cells are undecided."""
    return sum(row.undecided for row in team.rows) < UNDECIDED_SHARE * len(team.rows)
