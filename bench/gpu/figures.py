# SPDX-License-Identifier: Apache-2.0
"""What is measured, as ratios or times with their spread, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from collectives.intervals import of_median

NUMBERS = ("median", "low", "high", "least", "most")


@dataclass(frozen=True)
class Goal:
    """``most`` of a figure, or the ``least``."""

    most: float | None = None
    least: float | None = None

    def __str__(self) -> str:
        return f"<= {self.most:g}" if self.most is not None else f">= {self.least:g}"

    def met_by(self, value: float) -> bool:
        """Whether a median reaches it."""
        return value <= self.most if self.most is not None else value >= (self.least or 0.0)


@dataclass(frozen=True)
class Figure:
    """Values of all rounds: median, a 95 % interval of it (unknown of few rounds), and extremes."""

    row: str
    what: str
    ranks: int
    nbytes: int
    dtype: str
    rounds: int
    median: float
    low: float
    high: float
    least: float
    most: float
    goal: str = ""
    met: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the digits that mean something; unknown bounds are null."""
        found = {name: getattr(self, name) for name in NUMBERS}
        rounded = {n: float(f"{v:.4g}") if np.isfinite(v) else None for n, v in found.items()}
        return asdict(self) | rounded


@dataclass(frozen=True)
class Cell:
    """Where a figure belongs: a row of the table."""

    row: str
    ranks: int = 0
    nbytes: int = 0
    dtype: str = ""

    def figure(self, what: str, values: Sequence[float], goal: Goal | None = None) -> Figure:
        """Return the figure of one value for each round."""
        found = np.asarray(values, dtype=np.float64)
        median = float(np.median(found))
        low, high = of_median(found)
        return Figure(
            self.row, what, self.ranks, self.nbytes, self.dtype, len(found), median, low, high,
            float(found.min()), float(found.max()), "" if goal is None else str(goal),
            None if goal is None else goal.met_by(median),
        )  # fmt: skip
