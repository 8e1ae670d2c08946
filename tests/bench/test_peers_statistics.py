# SPDX-License-Identifier: Apache-2.0
"""Ratios, their intervals and verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from bench.peers.statistics import (
    MET,
    MISSED,
    UNDECIDED,
    Estimate,
    estimate,
    geometric_mean,
    paired,
    verdict,
    worst,
)


def test_only_rounds_that_both_have_are_paired() -> None:
    ratios = paired({3: 30.0, 1: 4.0, 2: 9.0}, {1: 2.0, 3: 10.0, 4: 1.0})
    assert ratios.tolist() == [2.0, 3.0]
    assert len(paired({1: 1.0}, {2: 1.0})) == 0


def test_an_estimate_is_the_median_within_its_interval() -> None:
    values = np.random.default_rng(1).lognormal(0.5, 0.2, 15)
    found = estimate(values)
    assert (found.value, found.count) == (np.median(values), 15)
    assert values.min() <= found.low < found.value < found.high <= values.max()
    assert found == estimate(values)  # the seed is fixed
    assert estimate([2.0]) == Estimate(2.0, 2.0, 2.0, 1)


def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(7)
    samples = [estimate(generator.normal(1.0, 0.1, 15)) for _ in range(300)]
    covered = sum(found.low <= 1.0 <= found.high for found in samples)
    assert 0.90 <= covered / 300 <= 0.99


def test_more_rounds_make_the_interval_narrower() -> None:
    values = np.random.default_rng(2).normal(2.0, 0.5, 60)
    few, many = estimate(values[:15]), estimate(values)
    assert many.high - many.low < few.high - few.low
    assert (estimate([1, 1.3, 0.7, 1.2]).wide, estimate([1, 1.01, 0.99, 1]).wide) == (True, False)


def test_the_geometric_mean_is_of_the_medians() -> None:
    found = geometric_mean([[1.0, 1.0, 9.0], [4.0, 4.0, 4.0]])
    assert found.value == pytest.approx(2.0)
    assert found.count == 2
    assert found.low == pytest.approx(2.0)
    assert found.high == pytest.approx(6.0)  # 9 is the median of some replicates
    assert geometric_mean([[3.0]]).high == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("low", "value", "high", "expected"),
    [
        (0.80, 0.85, 0.94, MISSED),  # all below the goal, however wide
        (0.90, 0.94, 0.96, MET),  # narrow, and the goal lies inside
        (0.80, 0.97, 1.20, UNDECIDED),  # wide, and the goal lies inside
        (0.95, 1.50, 2.50, MET),  # wide, none of it below
    ],
)
def test_verdicts(low: float, value: float, high: float, expected: str) -> None:
    assert verdict(Estimate(value, low, high, 15), 0.95) == expected


def test_the_worst_verdict_counts() -> None:
    assert worst([MET, UNDECIDED, MET]) == UNDECIDED
    assert worst([UNDECIDED, MISSED]) == MISSED
    assert worst([MET]) == MET
