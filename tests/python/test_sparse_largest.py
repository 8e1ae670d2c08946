# SPDX-License-Identifier: Apache-2.0
"""The largest elements of a sum: exactly those, with bytes that do not grow with the ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from tests.oracle import DTYPES
from tests.python.ranks import on_ranks, on_wired_ranks

FLOATS = ("float32", "float64", "float16", "bfloat16")


def contributions(seed: int, p: int, dtype: str, length: int, density: float) -> list[cl.Sparse]:
    """Draw small numbers, of whose sums many have one magnitude; some are NaN or infinite."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(p):
        places = np.flatnonzero(rng.random(length) < density)
        values = rng.integers(-4, 5, places.size) * np.exp2(rng.integers(-8, 3, places.size))
        values[rng.random(places.size) < 0.01] = np.inf
        values[rng.random(places.size) < 0.01] = np.nan
        parts.append(cl.Sparse(places, values.astype(DTYPES[dtype]), length))
    return parts


def largest_of(total: cl.Sparse, wanted: int) -> npt.NDArray[Any]:
    """Return which are to be found: by magnitude, NaN first, then by place."""
    magnitude = np.abs(np.asarray(total.values).astype(np.float64))
    magnitude[np.isnan(magnitude)] = np.inf
    beyond = np.isnan(np.asarray(total.values).astype(np.float64))
    order = np.lexsort((total.indices, -magnitude, ~beyond))
    return np.sort(np.asarray(total.indices)[order[:wanted]])


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(1, 9),
    dtype=st.sampled_from(FLOATS),
    length=st.sampled_from([0, 1, 40, 3000]),
    density=st.sampled_from([0.01, 0.3, 1.0]),
    wanted=st.sampled_from([1, 2, 37, 500, 2**63]),
    op=st.sampled_from(["sum", "avg"]),
)
def test_they_are_the_largest_of_the_sum(
    seed: int, p: int, dtype: str, length: int, density: float, wanted: int, op: str
) -> None:
    parts = contributions(seed, p, dtype, length, density)

    def body(comm: cl.Communicator) -> None:
        mine = parts[comm.rank]
        same: Any = {"output": "sparse", "algorithm": "ssar_split_allgather"}
        total = comm.allreduce(mine, op=op, **same)
        # Sums that differ may round to averages that do not.
        sums = comm.allreduce(mine, **same)
        got = comm.allreduce(mine, op=op, output="sparse", largest=wanted)
        assert comm.last is not None
        assert comm.last.algorithm == "ssar_split_allgather"
        there = np.asarray(sums.values) != 0  # zeros are not counted on
        whole = cl.Sparse(sums.indices[there], sums.values[there], length)
        expected = largest_of(whole, wanted)
        found = got.indices[np.asarray(got.values) != 0]
        assert found.tolist() == expected.tolist()
        assert got.nnz <= wanted
        assert np.array_equal(
            got.dense()[expected].astype(float),
            total.dense()[expected].astype(float),
            equal_nan=True,
        )

    on_ranks(p, body)


@pytest.mark.parametrize("p", [2, 3, 5])
def test_between_machines(p: int) -> None:
    parts = contributions(7, p, "float32", 5000, 0.2)

    def body(comm: cl.Communicator) -> Any:
        return comm.allreduce(parts[comm.rank], largest=100, output="sparse").indices

    places = on_wired_ranks(p, body)
    assert all(np.array_equal(places[0], other) for other in places)
    assert places[0].size == 100


@pytest.mark.parametrize("p", [4, 8])
def test_bytes_are_of_the_order_of_what_is_wanted(p: int) -> None:
    wanted, length = 2000, 200_000

    def body(comm: cl.Communicator) -> None:
        rng = np.random.default_rng(comm.rank)
        places = np.sort(rng.choice(length, wanted, replace=False))
        mine = cl.Sparse(places, rng.standard_normal(wanted).astype(np.float32), length)
        comm.allreduce(mine, largest=wanted, coding="raw")
        assert comm.last is not None
        # Pairs of 8 bytes: the own ones to their owners, and what came to be owned to all; parts
        # are cut by samples, so some have more than others.
        share = (p - 1) / p
        assert comm.last.nbytes <= 1.25 * share * 2 * wanted * 8 + 64 * (p + 4)

    on_ranks(p, body)


def test_what_is_not_told_is_left_for_the_next_call() -> None:
    length, steps = 300, 12

    def body(comm: cl.Communicator) -> Any:
        rng = np.random.default_rng(comm.rank)
        topk = cl.TopK(0.05, of_sum=True)
        given_, told = np.zeros(length), np.zeros(length)
        for _ in range(steps):
            gradient = rng.integers(-9, 10, length).astype(np.float32)
            given_ += gradient
            comm.allreduce(gradient, compress=topk)
            assert np.count_nonzero(gradient) <= 15
            told += gradient
        return given_, told, topk.residual

    ranks = on_ranks(4, body)
    for _, told, _ in ranks:
        np.testing.assert_array_equal(told, ranks[0][1])
    np.testing.assert_array_equal(sum(r[0] - r[2] for r in ranks), ranks[0][1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"largest": 0}, "largest is 0"),
        ({"largest": -1}, "largest is -1"),
        ({"largest": True}, "largest is True"),
        ({"largest": 1.5}, "largest is 1.5"),
        ({"largest": 2, "algorithm": "ring"}, "only allreduce by ssar_split_allgather"),
        ({"largest": 2, "algorithm": "dense"}, "only allreduce by ssar_split_allgather"),
        ({"largest": 2, "compress": cl.QSGD(4)}, "quantise"),
    ],
)
def test_bad_wishes_are_refused(options: dict[str, Any], words: str) -> None:
    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError, match=words):
            comm.allreduce(cl.Sparse(np.array([1]), np.ones(1), 9), **options)
        with pytest.raises(cl.InvalidArgumentError, match="the largest of values of int32"):
            comm.allreduce(cl.Sparse(np.array([1]), np.ones(1, np.int32), 9), largest=1)
        with pytest.raises(cl.InvalidArgumentError, match="sparse arrays only"):
            comm.allreduce(np.ones(3), largest=1)

    on_ranks(1, body)


def test_ranks_that_want_other_numbers_are_told() -> None:
    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.MismatchError, match="the 2 largest"):
            comm.allreduce(cl.Sparse(np.array([1]), np.ones(1), 9), largest=1 + comm.rank)

    on_ranks(2, body)
