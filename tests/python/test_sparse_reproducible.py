# SPDX-License-Identifier: Apache-2.0
"""Reproducible sums of sparse vectors: the bits of the dense ones, whatever algorithm runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from collectives import sparse_algorithms
from tests.canonical import FLOATS, canonical_fold, exact, operands
from tests.oracle import DTYPES
from tests.python.ranks import on_ranks, on_wired_ranks

ALLREDUCES = [a.name for a in sparse_algorithms() if a.kind == "allreduce"]
LENGTH = 240


def contribution(dtype: str, rank: int, seed: int, density: float) -> Any:
    """Some of the numbers whose order of additions tells, zeros elsewhere; some are -0."""
    rng = np.random.default_rng([seed, rank])
    row = operands(dtype, rank, LENGTH, seed)
    row[rng.random(LENGTH) < 0.1] = -0.0
    row[rng.random(LENGTH) >= density] = 0
    return row


def as_sparse(row: npt.NDArray[Any]) -> cl.Sparse:
    places = np.flatnonzero((row != 0) | np.signbit(row.real.astype(np.float64)))
    return cl.Sparse(places[::-1].copy(), row[places][::-1].copy(), row.size)


def as_array(x: Any) -> npt.NDArray[Any]:
    return x.dense() if isinstance(x, cl.Sparse) else np.asarray(x)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(1, 9),
    dtype=st.sampled_from(FLOATS),
    density=st.sampled_from([0.02, 0.3, 1.0]),
    reproducible=st.sampled_from([True, "any_p"]),
    op=st.sampled_from(["sum", "avg"]),
    above=st.sampled_from([None, 0.0, 0.2, 1.0]),
)
def test_all_algorithms_give_the_bits_of_the_dense_sum(
    seed: int, p: int, dtype: str, density: float, reproducible: Any, op: str, above: Any
) -> None:
    rows = [contribution(dtype, r, seed, density) for r in range(p)]
    ran, refused = [], []

    def body(comm: cl.Communicator) -> None:
        mine = as_sparse(rows[comm.rank])
        dense = comm.allreduce(rows[comm.rank].copy(), op=op, reproducible=reproducible)
        dense += dense.dtype.type(0)  # a zero is +0
        for algorithm in (*ALLREDUCES, "dense", None):
            try:
                got = comm.allreduce(
                    mine,
                    op=op,
                    reproducible=reproducible,
                    algorithm=algorithm,
                    dense_above=above,
                )
            except cl.UnsupportedError as refusal:
                refused.append(str(refusal))
                continue
            if comm.rank == 0:
                ran.append(algorithm)
            assert as_array(got).tobytes() == dense.tobytes(), algorithm

    on_ranks(p, body)
    assert all("choose ssar_" in said and "dsar_split_allgather" in said for said in refused)
    assert {"ssar_split_allgather", "dsar_split_allgather", "allgather", "dense", None} <= {*ran}


@pytest.mark.parametrize(("among", "p"), [(on_ranks, 4), (on_ranks, 7), (on_wired_ranks, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_the_bits_are_those_of_the_definition(among: Any, p: int, dtype: str) -> None:
    rows = [contribution(dtype, r, 1, 0.5) for r in range(p)]
    tree = canonical_fold(rows, "sum") + rows[0].dtype.type(0)
    assert tree.tobytes() != sum(rows[1:], rows[0]).tobytes()  # or the order would not tell

    def body(comm: cl.Communicator) -> None:
        mine = as_sparse(rows[comm.rank])
        assert as_array(comm.allreduce(mine, reproducible=True)).tobytes() == tree.tobytes()
        if dtype == "float32":
            rounded = exact(rows, "sum").tobytes()
            assert as_array(comm.allreduce(mine, reproducible="any_p")).tobytes() == rounded

    among(p, body)


@pytest.mark.parametrize("reproducible", [True, "any_p"])
def test_parts_of_a_reduce_scatter(reproducible: Any) -> None:
    rows = [contribution("bfloat16", r, 2, 0.4) for r in range(5)]

    def body(comm: cl.Communicator) -> None:
        mine = as_sparse(rows[comm.rank])
        dense = comm.reduce_scatter(rows[comm.rank].copy(), reproducible=reproducible)
        got = comm.reduce_scatter(mine, reproducible=reproducible)
        assert as_array(got).tobytes() == (dense + dense.dtype.type(0)).tobytes()
        with pytest.raises(cl.UnsupportedError, match="choose direct, or none"):
            comm.reduce_scatter(mine, reproducible=reproducible, algorithm="circulant")

    on_ranks(5, body)


def test_whole_numbers_are_reproducible_by_every_algorithm() -> None:
    def body(comm: cl.Communicator) -> None:
        mine = cl.Sparse(np.array([1, 5]), np.array([1, 2], np.int32), 9)
        for algorithm in ALLREDUCES:
            got = comm.allreduce(mine, reproducible=True, algorithm=algorithm)
            assert as_array(got).tolist() == [0, 3, 0, 0, 0, 6, 0, 0, 0]

    on_ranks(3, body)


def test_ranks_that_do_not_all_ask_for_it_are_told() -> None:
    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.MismatchError, match="reproducible"):
            comm.allreduce(cl.Sparse(np.array([1]), np.ones(1), 9), reproducible=comm.rank == 1)

    on_ranks(2, body)


def test_other_words_are_refused() -> None:
    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError, match="reproducible is 'p'"):
            comm.allreduce(cl.Sparse(np.array([1]), np.ones(1), 9), reproducible="p")  # type: ignore[arg-type]

    on_ranks(1, body)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("reproducible", [True, "any_p"])
@pytest.mark.parametrize("entries", [5, 5000])  # with the agreement, and after it
def test_a_result_shares_no_memory_with_what_was_handed_in(
    p: int, reproducible: Any, entries: int
) -> None:
    def body(comm: cl.Communicator) -> None:
        places = np.arange(entries if comm.rank == 0 else 0, dtype=np.int32) * 3
        mine = cl.Sparse(places, np.ones(places.size, np.float32), 3 * entries)
        got = comm.allreduce(mine, reproducible=reproducible, output="sparse")
        expected = np.arange(entries) * 3
        for _ in range(3):
            comm.allreduce(mine, reproducible=reproducible)  # what was freed is used again
        places[...] = 0
        np.testing.assert_array_equal(got.indices, expected)
        np.testing.assert_array_equal(got.values, np.ones(entries))

    on_ranks(p, body)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("p", [2, 3, 5])
def test_infinities_and_nans_of_several_ranks(dtype: str, p: int) -> None:
    cases = list(itertools.product([np.nan, np.inf, -np.inf, 1.0], repeat=p))
    places = np.arange(len(cases))

    def body(comm: cl.Communicator) -> None:
        mine = np.array([case[comm.rank] for case in cases]).astype(DTYPES[dtype])
        x = cl.Sparse(places, mine, len(cases))
        for reproducible in (True, "any_p"):
            dense = comm.allreduce(mine.copy(), reproducible=reproducible)
            for algorithm in ("allgather", "ssar_split_allgather", None):
                got = comm.allreduce(x, reproducible=reproducible, algorithm=algorithm)
                np.testing.assert_array_equal(
                    as_array(got).astype(complex).real, dense.astype(complex).real
                )

    on_ranks(p, body)
