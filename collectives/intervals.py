# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals by order statistics, which ask nothing of how measurements scatter."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
_NORMAL = 1.96  # standard deviations that hold 95 %


def of_median(values: Values, deviations: float = _NORMAL) -> tuple[float, float]:
    """Return an interval for the median, of 95 % or so many standard deviations.

    Of too few values nothing is known: fewer than eight at 95 %.
    """
    n = len(values)
    return _between(np.sort(values), n / 2, deviations * math.sqrt(n) / 2)


def of_shift(old: Values, new: Values) -> tuple[float, float, float]:
    """Return how far ``new`` lies above ``old``, by all pairs, and a 95 % interval for it.

    H. B. Mann, D. R. Whitney, On a test of whether one of two random variables is stochastically
    larger than the other, Annals of Mathematical Statistics 18, 1947; J. L. Hodges, E. L. Lehmann,
    Estimates of location based on rank tests, ibid. 34, 1963.
    """
    n, m = len(old), len(new)
    every = np.sort((new[:, None] - old[None, :]).ravel())
    low, high = _between(every, n * m / 2, _NORMAL * math.sqrt(n * m * (n + m + 1) / 12))
    return float(np.median(every)), low, high


def _between(ordered: Values, middle: float, reach: float) -> tuple[float, float]:
    left_out = math.floor(middle - reach) - 1  # at either end
    if left_out < 0:
        return -math.inf, math.inf
    return float(ordered[left_out]), float(ordered[-1 - left_out])
