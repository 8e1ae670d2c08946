# SPDX-License-Identifier: Apache-2.0
"""Elements whose result is 0: whether they are in it is not promised, but it is alike everywhere.

Once a part of a vector has all its values nobody knows any more which zeros were given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from collectives import sparse_algorithms
from tests.python.ranks import on_ranks, on_wired_ranks

ALGORITHMS = [a.name for a in sparse_algorithms("allreduce")] + ["dense", "auto"]


def contributions(seed: int, p: int, length: int) -> list[cl.Sparse]:
    """Return vectors of -1, 0 and 1, some nearly full, of which some elements cancel."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(p):
        places = np.flatnonzero(rng.random(length) < rng.choice([0.01, 0.3, 0.7, 0.95]))
        parts.append(cl.Sparse(places, rng.integers(-1, 2, places.size).astype(float), length))
    return parts


def check(found: cl.Sparse, parts: list[cl.Sparse], expected: Any) -> list[int]:
    """Look at what is promised of one result; return its indices."""
    np.testing.assert_array_equal(found.dense(), expected)
    places = set(found.indices.tolist())
    assert set(np.flatnonzero(expected).tolist()) <= places
    assert places <= {place for part in parts for place in part.indices.tolist()}
    return list(found.indices.tolist())


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(1, 7),
    length=st.sampled_from([0, 1, 40, 300, 3000]),
    algorithm=st.sampled_from(ALGORITHMS),
    coding=st.sampled_from(["raw", "coded"]),
    above=st.sampled_from([None, 0.3]),
)
def test_all_ranks_have_the_same_elements(
    seed: int, p: int, length: int, algorithm: str, coding: Any, above: Any
) -> None:
    parts = contributions(seed, p, length)
    dense = [part.dense() for part in parts]
    options: Any = {"algorithm": algorithm, "coding": coding, "dense_above": above}
    for op, expected in (("sum", sum(dense)), ("max", np.max(dense, axis=0))):

        def body(comm: cl.Communicator, op: str = op, expected: Any = expected) -> list[int]:
            mine = parts[comm.rank]
            return check(comm.allreduce(mine, op=op, output="sparse", **options), parts, expected)

        ranks = on_ranks(p, body)
        assert all(places == ranks[0] for places in ranks)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_between_machines(algorithm: str) -> None:
    parts = contributions(3, 3, 4000)
    expected = sum(part.dense() for part in parts)

    def body(comm: cl.Communicator) -> list[int]:
        mine = parts[comm.rank]
        return check(comm.allreduce(mine, output="sparse", algorithm=algorithm), parts, expected)

    ranks = on_wired_ranks(3, body)
    assert all(places == ranks[0] for places in ranks)


@pytest.mark.parametrize("wanted", [1, 9, 200])
def test_the_largest_are_fewer_where_sums_are_zero(wanted: int) -> None:
    """Of nine elements that are given one adds up to 0."""

    def body(comm: cl.Communicator) -> list[int]:
        values = np.arange(1.0, 10)
        values[4] = 1.0 if comm.rank else -1.0
        found = comm.allreduce(cl.Sparse(np.arange(9), values, 12), largest=wanted, output="sparse")
        assert min(wanted, 8) <= found.nnz <= min(wanted, 9)
        left = np.where(np.arange(1, 10) == 5, 0, 2 * np.arange(1.0, 10))
        left[: 9 - wanted if wanted < 9 else 0] = 0
        np.testing.assert_array_equal(found.dense()[:9], left)
        return list(found.indices.tolist())

    ranks = on_ranks(2, body)
    assert ranks[0] == ranks[1]
