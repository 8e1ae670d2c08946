# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals by order statistics, which ask nothing of how measurements scatter."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
_NORMAL = 1.96  # standard deviations that hold 95 %


def of_median(values: Values) -> tuple[float, float]:
    """Return a 95 % interval for the median; of fewer than eight values nothing is known."""
    n = len(values)
    return _between(np.sort(values), n / 2, _NORMAL * math.sqrt(n) / 2)


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
