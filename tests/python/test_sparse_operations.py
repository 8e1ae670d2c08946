# SPDX-License-Identifier: Apache-2.0
"""Operations of sparse vectors that are no sums: as of the dense vectors, whatever runs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from collectives import sparse_algorithms
from tests.python.ranks import on_ranks, on_wired_ranks

ALGORITHMS = [a.name for a in sparse_algorithms("allreduce")] + ["dense", "auto"]
FLOATS = ("float64", "float16", "complex64")
DTYPES = ("float32", "int8", "uint16", "int64", "bool", *FLOATS)


def operations_of(dtype: str) -> list[Any]:
    if dtype == "complex64":
        return ["prod"]
    bits = [] if dtype.startswith("float") else ["lor", "land", "lxor", "bor", "band", "bxor"]
    return ["min", "max", "prod", *bits]


def parts_of(seed: int, p: int, length: int, dtype: str) -> list[cl.Sparse]:
    """Return vectors of which some elements are with all ranks, some with none."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(p):
        places = np.flatnonzero(rng.random(length) < rng.choice([0.1, 0.5, 0.95]))
        values = rng.integers(-3, 4, places.size).astype(dtype)  # zeros that are given, too
        parts.append(cl.Sparse(rng.permutation(places), values, length))
    return parts


def as_dense(x: Any) -> Any:
    return x.dense() if isinstance(x, cl.Sparse) else np.asarray(x)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(1, 9),
    length=st.integers(0, 300),
    dtype=st.sampled_from(DTYPES),
    algorithm=st.sampled_from(ALGORITHMS),
    output=st.sampled_from(["auto", "sparse", "dense"]),
    above=st.sampled_from([None, 0.0, 0.3, 1.0]),
)
def test_any_operation(
    seed: int, p: int, length: int, dtype: str, algorithm: str, output: Any, above: Any
) -> None:
    parts = parts_of(seed, p, length, dtype)

    def body(comm: cl.Communicator) -> None:
        mine = parts[comm.rank]
        for op in operations_of(dtype):
            expected = comm.allreduce(mine.dense(), op=op)
            found = comm.allreduce(
                mine, op=op, algorithm=algorithm, output=output, dense_above=above
            )
            np.testing.assert_array_equal(as_dense(found), expected)
            assert output == "auto" or isinstance(found, cl.Sparse) == (output == "sparse")

    on_ranks(p, body)


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("p", [2, 3, 5])
def test_parts_of_them(among: Any, p: int) -> None:
    parts = parts_of(p, p, 400 * p, "float32")

    def body(comm: cl.Communicator) -> None:
        for op in ("min", "max", "prod"):
            expected = comm.reduce_scatter(parts[comm.rank].dense(), op=op)
            for name in [a.name for a in sparse_algorithms("reduce_scatter")]:
                found = comm.reduce_scatter(parts[comm.rank], op=op, algorithm=name)
                np.testing.assert_array_equal(as_dense(found), expected)

    among(p, body)


def test_what_is_absent_is_zero() -> None:
    def body(comm: cl.Communicator) -> None:
        both = cl.Sparse(np.array([1, 5 + comm.rank]), np.array([-3.0, -4.0]), 100)
        most = comm.allreduce(both, op="max", output="sparse")
        # Whether 5 and 6, which are 0, are in the result is not promised.
        assert {1} <= set(most.indices.tolist()) <= {1, 5, 6}
        assert most.dense()[[1, 5, 6]].tolist() == [-3, 0, 0]
        assert comm.allreduce(both, op="min", output="sparse").values.tolist() == [-3, -4, -4]
        # Values of one index are one element before ranks are compared.
        twice = cl.Sparse(np.array([1, 1]), np.array([2.0, -5.0]), 100)
        assert comm.allreduce(twice, op="max", output="sparse").values.tolist() == [-3]
        none = cl.Sparse(np.arange(comm.rank), np.full(comm.rank, np.nan), 100)
        assert np.isnan(comm.allreduce(none, op="max", output="sparse").values[0])

    on_ranks(2, body)


def test_products_are_reproducible() -> None:
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(50).astype("float32") for _ in range(4)]
    where = np.arange(0, 500, 10)

    def body(comm: cl.Communicator) -> bytes:
        mine = cl.Sparse(where, values[comm.rank], 500)
        expected = comm.allreduce(mine.dense(), op="prod", reproducible=True)
        for name in ("ssar_split_allgather", "allgather", "ssar_recursive_double", "dense"):
            found = comm.allreduce(mine, op="prod", reproducible=True, algorithm=name)
            np.testing.assert_array_equal(as_dense(found), expected)
        return bytes(expected)

    assert len(set(on_ranks(4, body))) == 1


def test_what_is_no_operation_of_theirs() -> None:
    def body(comm: cl.Communicator) -> None:
        x = cl.Sparse(np.array([1]), np.ones(1), 100)
        bad = cl.InvalidArgumentError
        with pytest.raises(bad, match="an operation of the user is not there for sparse vectors"):
            comm.allreduce(x, op=cl.op(np.maximum, commutative=True))
        with pytest.raises(bad, match="sparse allreduce: max of complex128 is not there"):
            comm.allreduce(cl.Sparse(np.array([1]), np.ones(1, complex), 100), op="max")
        with pytest.raises(bad, match="band of float64 is not there"):
            comm.allreduce(x, op="band")
        with pytest.raises(bad, match="of a sum"):
            comm.allreduce(x, op="max", largest=2)
        with pytest.raises(bad, match="only sums are quantised"):
            comm.allreduce(x, op="max", compress=cl.QSGD(4))
        with pytest.raises(cl.MismatchError, match="max"):
            comm.allreduce(x, op="max" if comm.rank else "min")

    on_ranks(2, body)


def test_any_byte_but_zero_is_true() -> None:
    """Whether one rank has an element or several: its truth is the byte 1."""
    where = np.arange(0, 4000, 10)

    def body(comm: cl.Communicator) -> None:
        odd = np.full(where.size, 255, np.uint8).view(bool)
        odd[0] = False
        mine = cl.Sparse(where + comm.rank, odd, 4000)
        for name in ALGORITHMS:
            for output in ("sparse", "dense"):
                found = comm.allreduce(mine, algorithm=name, output=output)
                values = found.values if isinstance(found, cl.Sparse) else found
                assert set(values.view(np.uint8).tolist()) <= {0, 1}
        assert odd.view(np.uint8).max() == 255

    on_ranks(2, body)
    on_ranks(1, lambda comm: body(comm))


@pytest.mark.parametrize("reproducible", [False, True, "any_p"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_what_a_rank_gives_at_one_index_is_rounded_once(dtype: str, reproducible: Any) -> None:
    """Rounded each time, the sum stops where one more is less than half a step."""
    kind = np.dtype(dtype if dtype == "float16" else getattr(ml_dtypes, dtype))
    n = 440
    values = np.full(n, 1, kind)
    x = cl.Sparse(np.zeros(n, "i4"), values, 4)
    result = cl.local(1)[0].allreduce(x, output="dense", reproducible=reproducible)
    assert result[0] == np.float32(n).astype(kind)
