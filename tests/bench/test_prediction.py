# SPDX-License-Identifier: Apache-2.0
"""What is said of predictions beside measurements, on plans by hand."""

from __future__ import annotations

from typing import Any

import collectives as cl
from bench import prediction_hosts
from bench.prediction import RANKS, at_least, candidates, regret, right_order, summary


def plan(
    algorithm: str, measured: float, predicted: float, at_least: float = 1.01
) -> dict[str, Any]:
    return {
        "algorithm": algorithm,
        "measured_us": measured,
        "predicted_us": predicted,
        "at_least": at_least,
    }


def test_the_order_is_that_of_the_first_two_algorithms() -> None:
    right = [plan("a", 10, 11), plan("a", 12, 9), plan("b", 20, 12)]
    wrong = [plan("a", 10, 30), plan("b", 20, 12)]
    even = [plan("a", 10, 30), plan("b", 10.4, 12)]
    doubtful = [plan("a", 10, 30), plan("b", 20, 12, at_least=0.9)]
    assert [right_order(one) for one in (right, wrong)] == [True, False]
    assert [right_order(one) for one in (even, doubtful, right[:2])] == [None] * 3
    assert [regret(one) for one in (right, wrong, even)] == [1.2, 2.0, 1.04]


def test_what_differs_beyond_doubt() -> None:
    fastest = [10.0 + i % 3 for i in range(20)]
    assert at_least(fastest, [2 * one for one in fastest]) == 2
    assert at_least(fastest, fastest[1:] + fastest[:1]) < 1
    assert at_least(fastest[:3], [2 * one for one in fastest[:3]]) == 0  # nobody knows


def test_a_summary_says_how_far_predictions_are_off() -> None:
    cells = [{"plans": [plan("a", 10, 11), plan("b", 20, 16)]}, {"plans": [plan("a", 10, 13)]}]
    found = summary(cells)
    assert found["median_error"] == 0.2
    assert (found["cells"], found["cells_that_differ"], found["order_right"]) == (2, 1, 1.0)
    assert (found["regret_geomean"], found["regret_max"]) == (1.0, 1.0)


def test_every_algorithm_is_a_candidate_in_several_ways() -> None:
    found = candidates("allreduce")
    names = {c.algorithm for c in found}
    assert {"direct_one_shot", "direct_two_shot"} <= names
    assert names < {a.name for a in cl.algorithms("allreduce") if a.fits(RANKS)}
    assert len(found) == 4 * len(names) == len(set(found))


def test_errors_between_hosts_are_told_by_size() -> None:
    plans = [plan("a", 10, 11), plan("b", 10, 14), plan("c", 10, 13)]
    cells = [{"size": 64, "plans": plans}, {"size": 8, "plans": plans[:1]}]
    assert prediction_hosts.by_size(cells) == {"8": 0.1, "64": 0.3}
