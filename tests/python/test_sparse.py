# SPDX-License-Identifier: Apache-2.0
"""Sparse vectors among threads: the sum is that of the dense vectors, whatever runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from collectives import sparse_algorithms
from tests.python.ranks import on_ranks, on_wired_ranks

ALLREDUCES = [a.name for a in sparse_algorithms() if a.kind == "allreduce"] + ["dense", "auto"]
DTYPES = ("float32", "float64", "float16", "int8", "uint16", "int32", "int64", "complex64", "bool")


def contribution(rng: np.random.Generator, length: int, entries: int, dtype: str) -> cl.Sparse:
    """Small numbers, whose sums any dtype holds, at places of which some come twice."""
    places = rng.integers(0, max(length, 1), entries if length else 0)
    values = rng.integers(1, 3, places.size).astype(dtype)
    return cl.Sparse(places.astype(np.int32), values, length)


def dense_sum(parts: list[cl.Sparse]) -> npt.NDArray[Any]:
    whole = np.zeros(parts[0].length, parts[0].dtype)
    for part in parts:
        whole = np.logical_or(whole, part.dense()) if whole.dtype == bool else whole + part.dense()
    return whole


def as_dense(x: Any) -> npt.NDArray[Any]:
    return x.dense() if isinstance(x, cl.Sparse) else np.asarray(x)


AMONG = [(on_ranks, p) for p in (1, 2, 3, 4, 5, 7, 9)] + [(on_wired_ranks, p) for p in (2, 3, 5)]


@pytest.mark.parametrize(("among", "p"), AMONG)
@pytest.mark.parametrize("algorithm", ALLREDUCES)
def test_allreduce_is_the_sum(among: Any, p: int, algorithm: str) -> None:
    rng = np.random.default_rng(p)
    for length, most in ((0, 0), (1, 1), (5, 9), (1000, 40), (1000, 900), (70_000, 700)):
        parts = [
            contribution(rng, length, int(rng.integers(0, most + 1)), "float32") for _ in range(p)
        ]

        def body(comm: cl.Communicator, parts: list[cl.Sparse] = parts) -> Any:
            return comm.allreduce(parts[comm.rank], algorithm=algorithm)

        for result in among(p, body):
            np.testing.assert_array_equal(as_dense(result), dense_sum(parts))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(1, 9),
    length=st.integers(0, 300),
    dtype=st.sampled_from(DTYPES),
    algorithm=st.sampled_from(ALLREDUCES),
    index=st.sampled_from(["int16", "uint16", "int32", "uint32", "int64", "uint64"]),
    output=st.sampled_from(["auto", "sparse", "dense"]),
    above=st.sampled_from([None, 0.0, 0.3, 1.0]),
)
def test_any_call(
    seed: int, p: int, length: int, dtype: str, algorithm: str, index: str, output: Any, above: Any
) -> None:
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(p):
        part = contribution(rng, length, int(rng.integers(0, length + 3)), dtype)
        parts.append(cl.Sparse(part.indices.astype(index), part.values, length))

    def body(comm: cl.Communicator) -> Any:
        return comm.allreduce(
            parts[comm.rank], algorithm=algorithm, output=output, dense_above=above
        )

    for result in on_ranks(p, body):
        np.testing.assert_array_equal(as_dense(result), dense_sum(parts))
        assert output != "sparse" or isinstance(result, cl.Sparse)
        assert output != "dense" or isinstance(result, np.ndarray)
        if isinstance(result, cl.Sparse):
            assert np.all(np.diff(result.indices) > 0)
            assert result.dtype == np.dtype(dtype)


SHORT = [(on_ranks, 1), (on_ranks, 4), (on_wired_ranks, 3)]


@pytest.mark.parametrize(("among", "p"), SHORT)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8"])
@pytest.mark.parametrize("entries", [0, 10, 77, 78, 84, 85, 127, 300])  # a kilobyte is in between
def test_short_vectors_go_with_the_agreement(among: Any, p: int, dtype: str, entries: int) -> None:
    length = 60 * p
    rng = np.random.default_rng(entries)
    parts = [contribution(rng, length * 5, entries, dtype) for _ in range(p)]

    def body(comm: cl.Communicator) -> None:
        mine, r, n = parts[comm.rank], comm.rank, length * 5 // p
        whole = dense_sum(parts)
        np.testing.assert_array_equal(as_dense(comm.allreduce(mine)), whole)
        assert comm.last is not None
        most = 1000 // (4 + np.dtype(dtype).itemsize)
        short = all(np.unique(part.indices).size <= most for part in parts)
        assert (comm.last.algorithm == "at_once") == short
        assert (comm.last.messages == 0) == (short or p == 1 or comm.last.algorithm == "dense")
        got = as_dense(comm.reduce_scatter(mine))
        np.testing.assert_array_equal(got, whole[r * n : (r + 1) * n])
        together = np.concatenate([part.dense() for part in parts])
        np.testing.assert_array_equal(as_dense(comm.allgather(mine)), together)
        last = comm.size - 1
        np.testing.assert_array_equal(
            as_dense(comm.broadcast(mine, root=last)), parts[last].dense()
        )

    among(p, body)


def test_that_algorithm_is_not_to_be_asked_for() -> None:
    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError, match="at_once"):
            comm.allreduce(
                contribution(np.random.default_rng(0), 9, 2, "int8"), algorithm="at_once"
            )

    on_ranks(1, body)
