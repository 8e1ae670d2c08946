# SPDX-License-Identifier: Apache-2.0
"""``cl.Sparse``: what it takes, refuses and keeps, and that nothing that is given is written."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

INDEX_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
ALGORITHMS = [*(a.name for a in cl.sparse_algorithms("allreduce")), "dense"]


def alone(x: Any, **options: Any) -> Any:
    """Reduce over one rank."""
    (comm,) = cl.local(1)
    with comm:
        return comm.allreduce(x, **options)


def as_dense(x: Any) -> npt.NDArray[Any]:
    return x.dense() if isinstance(x, cl.Sparse) else np.asarray(x)


def test_it_keeps_what_it_is_given() -> None:
    indices, values = np.array([3, 1], np.int16), np.array([1.0, 2.0])
    x = cl.Sparse(indices, values, 8)
    assert x.indices is indices
    assert x.values is values
    assert (x.length, x.nnz, x.density, x.dtype) == (8, 2, 0.25, np.dtype("float64"))
    assert repr(x) == "Sparse(2 of 8 elements, float64)"
    assert x.dense().tolist() == [0, 2, 0, 1, 0, 0, 0, 0]
    assert x == x
    assert x != cl.Sparse(indices, values, 8)  # as objects: arrays have no one answer
    assert cl.Sparse(np.empty(0, int), np.empty(0), 0).density == 0
    assert cl.Sparse(indices, memoryview(values), np.int64(8)).dtype == np.dtype("float64")


def test_native_views_share_memory_with_what_is_given() -> None:
    indices, values = np.array([1, 3], np.int32), np.array([1.0, 2.0])
    places, numbers = cl.Sparse(indices, values, 8).operands("test")
    assert np.shares_memory(places.array, indices)
    assert np.shares_memory(numbers.array, values)


@pytest.mark.parametrize(
    ("indices", "values", "length", "sentence"),
    [
        (np.zeros((2, 2), int), np.zeros(4), 9, "the indices have 2 dimensions: pass one"),
        (np.zeros(4, int), np.zeros((2, 2)), 9, "the values have 2 dimensions: pass one"),
        (np.zeros(3, int), np.zeros(4), 9, "3 indices, but 4 values"),
        (np.zeros(3), np.zeros(3), 9, "the indices are float64: pass integers"),
        (np.zeros(3, bool), np.zeros(3), 9, "the indices are bool: pass integers"),
        (np.zeros(3, int), np.zeros(3, "U1"), 9, "values has dtype <U1: supported are"),
        (np.zeros(3, int), np.zeros(3), -1, "the length is -1: give the elements"),
        (np.zeros(3, int), np.zeros(3), 2.5, "the length is 2.5: give the elements"),
        (np.zeros(3, int), np.zeros(3), True, "the length is True: give the elements"),
        (np.zeros(3, ">i4"), np.zeros(3), 9, "whose bytes are in another order"),
        ([1, 2], np.zeros(2), 9, "indices is of type list: pass a NumPy array"),
    ],
)
def test_what_is_no_vector_is_refused(
    indices: Any, values: Any, length: Any, sentence: str
) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=sentence):
        cl.Sparse(indices, values, length)


@pytest.mark.parametrize("wrong", [8, -1, 2**31, -(2**31) - 1])
def test_indices_out_of_range_are_refused_where_they_are_used(wrong: int) -> None:
    x = cl.Sparse(np.array([1, wrong, 2], np.int64), np.ones(3), 8)
    with pytest.raises(cl.InvalidArgumentError, match=rf"index {wrong} \(at 1\) is none of a"):
        alone(x)
    with pytest.raises(cl.InvalidArgumentError, match=f"index {wrong} is none of a vector of 8"):
        x.dense()


def test_one_wrong_rank_leaves_all_as_they_were() -> None:
    def work(comm: cl.Communicator) -> Any:
        x = cl.Sparse(np.array([comm.rank + 6]), np.ones(1), 8)
        if comm.rank == 2:
            with pytest.raises(cl.InvalidArgumentError, match="index 8"):
                comm.allreduce(x)
            x = cl.Sparse(np.array([0]), np.ones(1), 8)
        return as_dense(comm.allreduce(x)).tolist()

    assert on_ranks(3, work) == [[1, 0, 0, 0, 0, 0, 1, 1]] * 3


def test_dense_and_back() -> None:
    x = np.array([[0, 2, -0.0], [np.nan, 0, 1]])
    found = cl.Sparse.from_dense(x)
    assert found.indices.tolist() == [1, 3, 5]
    assert found.length == 6
    assert not np.shares_memory(found.values, x)
    np.testing.assert_array_equal(found.dense(), np.where(x == 0, 0, x).reshape(-1))
    assert cl.Sparse.from_dense(np.zeros(0)).nnz == 0
    assert cl.Sparse.from_dense(np.arange(12.0).reshape(3, 4).T[::2]).dense().tolist() == [
        0, 4, 8, 2, 6, 10,
    ]  # fmt: skip
    with pytest.raises(cl.InvalidArgumentError, match=r"Sparse.from_dense: x has dtype object"):
        cl.Sparse.from_dense(np.array([None, 1]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_float(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    values = np.array([1, 2, 3, 0.5], kind)

    def work(comm: cl.Communicator) -> None:
        x = cl.Sparse(np.array([7, 2, 7, comm.rank]), values, 9)
        for algorithm in ALGORITHMS:
            found = comm.allreduce(x, algorithm=algorithm, output="sparse")
            assert found.dtype == kind
            assert found.indices.tolist() == [0, 1, 2, 7]
            assert found.values.astype(float).tolist() == [0.5, 0.5, 4, 8]
        assert x.dense().astype(float).tolist() == [0.5, 0, 2, 0, 0, 0, 0, 4, 0] or comm.rank
        assert cl.Sparse.from_dense(x.dense()).nnz == 3

    on_ranks(2, work)


@pytest.mark.parametrize("index", INDEX_DTYPES)
def test_every_index_dtype_strided_and_read_only(index: str) -> None:
    wide = np.array([5, 0, 100, 0, 5, 0], index)
    values = np.array([1.0, -1, 2, -1, 3, -1])[::2]
    strided = cl.Sparse(wide[::2], values, 101)
    flipped = cl.Sparse(wide[::2][::-1], values[::-1], 101)
    for array in (wide, values):
        array.flags.writeable = False
    for x in (strided, flipped):
        found = alone(x, output="sparse")
        assert (found.indices.tolist(), found.values.tolist()) == ([5, 100], [4.0, 2.0])
        assert found.indices.dtype == np.int32
        assert x.dense()[[5, 100]].tolist() == [4, 2]


def test_nan_infinity_and_zeros_that_are_given() -> None:
    def work(comm: cl.Communicator) -> None:
        places = np.array([1, 2, 3, 4, 5])
        values = np.array([np.nan, np.inf, -np.inf if comm.rank else np.inf, 0, comm.rank - 0.5])
        for algorithm in ALGORITHMS:
            x = cl.Sparse(places, values, 100)
            whole = as_dense(comm.allreduce(x, algorithm=algorithm))
            np.testing.assert_array_equal(whole[1:6], [np.nan, np.inf, np.nan, 0, 0])
            assert not whole[6:].any()
        found = comm.allreduce(cl.Sparse(places, values, 100), algorithm="ssar_recursive_double")
        assert found.indices.tolist() == [1, 2, 3, 4, 5]  # sums that are zero stay

    on_ranks(2, work)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("output", ["sparse", "dense"])
def test_inputs_are_neither_written_nor_shared(p: int, index: str, output: Any) -> None:
    def work(comm: cl.Communicator) -> None:
        for order in ([1, 4, 6, 9], [4, 1, 9, 1]):
            indices, values = np.array(order, index), np.arange(1.0, 5)
            kept = indices.copy(), values.copy()
            # An empty vector of all others: their sum has the memory of nobody.
            some = slice(None) if comm.rank == 0 else slice(0)
            x = cl.Sparse(indices[some], values[some], 2 * 10)
            calls: list[tuple[Any, str | None]] = [(comm.allreduce, name) for name in ALGORITHMS]
            calls += [(comm.reduce_scatter, None), (comm.allgather, None), (comm.broadcast, None)]
            for call, name in calls:
                found = call(x, algorithm=name, output=output)
                arrays = [found.indices, found.values] if output == "sparse" else [found]
                for array in arrays:
                    assert not np.shares_memory(array, indices)
                    assert not np.shares_memory(array, values)
                    array[...] = 0  # they are the caller's
            np.testing.assert_array_equal(indices, kept[0])
            np.testing.assert_array_equal(values, kept[1])

    on_ranks(p, work)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_all_ranks_get_the_same_bits_within_the_bound(algorithm: str, dtype: str) -> None:
    p, length, kind = 5, 200, np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(3)
    parts = [
        cl.Sparse(rng.integers(0, length, 150), rng.normal(size=150).astype(kind), length)
        for _ in range(p)
    ]

    def work(comm: cl.Communicator) -> Any:
        return comm.allreduce(parts[comm.rank], algorithm=algorithm, output="dense")

    exact, size, count = np.zeros(length), np.zeros(length), np.zeros(length)
    for part in parts:
        np.add.at(exact, part.indices, part.values.astype(float))
        np.add.at(size, part.indices, np.abs(part.values.astype(float)))
        np.add.at(count, part.indices, 1)
    u = {"float32": 2**-24, "float16": 2**-11, "bfloat16": 2**-8}[dtype]
    first, *others = on_ranks(p, work)
    bound = (count - 1).clip(0) * u / (1 - (count - 1).clip(0) * u) * size
    assert (np.abs(first.astype(float) - exact) <= bound).all()
    for other in others:
        assert other.tobytes() == first.tobytes()


def test_results_outlive_what_they_came_from() -> None:
    import gc

    def work(comm: cl.Communicator) -> Any:
        return comm.allreduce(
            cl.Sparse(np.arange(1000), np.full(1000, comm.rank + 1.0), 10**6), output="sparse"
        )

    for found in on_ranks(3, work):
        gc.collect()
        assert (found.values == 6).all()
        assert (found.indices == np.arange(1000)).all()


def test_lengths_beyond_32_bits() -> None:
    length = 2**33

    def work(comm: cl.Communicator) -> None:
        x = cl.Sparse(np.array([length - 1 - comm.rank, 5]), np.ones(2), length)
        found = comm.allreduce(x)
        assert found.indices.tolist() == [5, length - 2, length - 1]
        assert found.indices.dtype == np.int64
        part = comm.reduce_scatter(x)
        assert part.length == length // 2
        where = [5] if comm.rank == 0 else [length // 2 - 2, length // 2 - 1]
        assert part.indices.tolist() == where
        assert comm.allgather(x).length == 2 * length

    on_ranks(2, work)


def test_the_list_of_algorithms() -> None:
    every = cl.sparse_algorithms()
    assert {a.kind for a in every} == {"allreduce", "reduce_scatter", "allgather", "broadcast"}
    assert [a.name for a in cl.sparse_algorithms("broadcast")] == ["binomial"]
    for a in every:
        assert a.paper
        assert a.summary.endswith(".")
        assert a.schedule in cl.algorithms(a.schedule.kind)
        assert a.schedule.kind == a.kind or a.name == "allgather"
    with pytest.raises(cl.InvalidArgumentError, match="collective of sparse vectors 'scan'"):
        cl.sparse_algorithms("scan")
