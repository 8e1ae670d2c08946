# SPDX-License-Identifier: Apache-2.0
"""Ratios of blocks measured in one round, their intervals, and verdicts. Pure functions.

A ratio is the median over rounds of peer/ours: both were measured within a second of each other,
so what the machine did to one it did to the other. Its interval is a bootstrap over the rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

REPLICATES = 2000
SEED = 20_240_229
TAIL = 2.5  # percent on each side of the interval
WIDEST = 0.10  # half of an interval over its value: above this the value is not known well enough

MET, INCOMPLETE, UNDECIDED, MISSED = "met", "incomplete", "undecided", "missed"


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, from `count` rounds (or, of a mean, sizes)."""

    value: float
    low: float
    high: float
    count: int

    @property
    def wide(self) -> bool:
        """Whether the interval is wider than ± 10 %."""
        return self.high - self.low > 2 * WIDEST * self.value


def paired(peer: Mapping[int, float], ours: Mapping[int, float]) -> Values:
    """Return peer/ours of every round that has both."""
    return np.array([peer[turn] / ours[turn] for turn in sorted(peer.keys() & ours.keys())])


def estimate(values: Sequence[float] | Values) -> Estimate:
    """Return the median of `values`, at least one, and its interval."""
    middle = np.asarray(values, np.float64)
    low, high = _interval(_medians(middle, np.random.default_rng(SEED)))
    return Estimate(float(np.median(middle)), low, high, len(middle))


def geometric_mean(groups: Sequence[Sequence[float] | Values]) -> Estimate:
    """Return the geometric mean of the medians of `groups`, and its interval."""
    arrays = [np.asarray(group, np.float64) for group in groups]
    generator = np.random.default_rng(SEED)
    logarithms = [np.log(_medians(array, generator)) for array in arrays]
    low, high = _interval(np.exp(np.mean(logarithms, axis=0)))
    value = np.exp(np.mean([np.log(np.median(array)) for array in arrays]))
    return Estimate(float(value), low, high, len(arrays))


def verdict(found: Estimate, goal: float) -> str:
    """Judge a value that is to be at least `goal`.

    Missed where the whole interval lies below the goal, met where none of it does. Where the goal
    lies inside, a narrow interval meets it and a wide one decides nothing.
    """
    if found.high < goal:
        return MISSED
    return UNDECIDED if found.low < goal and found.wide else MET


def worst(verdicts: Sequence[str]) -> str:
    """Return the verdict on all of several, at least one."""
    return max(verdicts, key=(MET, INCOMPLETE, UNDECIDED, MISSED).index)


def _medians(values: Values, generator: np.random.Generator) -> Values:
    drawn = generator.integers(0, len(values), (REPLICATES, len(values)))
    medians: Values = np.median(values[drawn], axis=1)
    return medians


def _interval(replicates: Values) -> tuple[float, float]:
    low, high = np.percentile(replicates, [TAIL, 100 - TAIL])
    return float(low), float(high)
