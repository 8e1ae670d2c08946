# SPDX-License-Identifier: Apache-2.0
"""The short way of sparse vectors gives what the long one gives, and takes only what is usual."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from collectives.errors import InvalidArgumentError
from collectives.sparse import quick
from tests.python.ranks import on_ranks


@pytest.fixture
def alone() -> Iterator[cl.Communicator]:
    (comm,) = cl.local(1)
    with comm:
        yield comm


def vector(indices: Any, values: Any, length: int = 100) -> cl.Sparse:
    return cl.Sparse(indices, values, length)


FEW: Any = np.array([5, 3, 5, 99])


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "complex64", ml_dtypes.bfloat16])
@pytest.mark.parametrize("places", ["int8", "uint16", "int32", "uint64"])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_both_ways_are_one(alone: cl.Communicator, dtype: Any, places: str, op: str) -> None:
    x = vector(FEW.astype(places), np.array([1, 2, 3, 4]).astype(dtype))
    short: cl.Sparse = quick.allreduce(alone, x, op)
    taken = alone.last
    long = alone.allreduce(x, op=op, output="auto")
    assert alone.last is not None
    assert taken is not None
    assert (taken.kind, taken.algorithm) == (alone.last.kind, alone.last.algorithm)
    assert (short.length, short.nnz) == (100, 3)
    assert short.indices.dtype == long.indices.dtype
    assert short.values.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(short.indices, [3, 5, 99])
    np.testing.assert_array_equal(short.values, long.values)


def test_read_only_arrays_and_dense_results(alone: cl.Communicator) -> None:
    indices, values = np.arange(100), np.ones(100, "float32")
    indices.flags.writeable = values.flags.writeable = False
    found = quick.allreduce(alone, vector(indices, values), "sum")
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, values)
    found += 1  # a result is the caller's


def test_a_result_lives_as_long_as_one_of_its_arrays(alone: cl.Communicator) -> None:
    x = vector(FEW, np.array([1.0, 2.0, 3.0, 4.0]))
    results = [quick.allreduce(alone, x, "sum") for _ in range(100)]
    places, values = [r.indices for r in results[::2]], [r.values for r in results[1::2]]
    del results
    gc.collect()
    for _ in range(100):
        quick.allreduce(alone, x, "max")
    assert all(p.tolist() == [3, 5, 99] and p.flags.writeable for p in places)
    assert all(v.tolist() == [2, 4, 4] and v.flags.writeable for v in values)
    memory = places[0].base
    del places, values
    gc.collect()
    assert sys.getrefcount(memory) == 2  # this name's, and the call's own


@pytest.mark.parametrize("dtype", ["float64", ml_dtypes.bfloat16])
def test_vectors_without_entries_and_without_length(alone: cl.Communicator, dtype: Any) -> None:
    for length in (0, 7):
        none = vector(np.zeros(0, "int32"), np.zeros(0, dtype), length)
        found = quick.allreduce(alone, none, "sum")
        assert (found.length, found.nnz) == (length, 0)
        assert found.values.dtype == np.dtype(dtype)
    full = quick.allreduce(alone, vector(np.arange(3), np.ones(3, dtype), 3), "sum")
    assert full.dtype == np.dtype(dtype)
    assert full.tolist() == [1, 1, 1]


def test_options_that_ask_for_nothing_are_none(alone: cl.Communicator, monkeypatch: Any) -> None:
    def long(*_: Any, **__: Any) -> None:
        raise AssertionError("the long way")

    x = vector(FEW, np.ones(4, "float32"))
    monkeypatch.setattr("collectives.reductions.unusual_allreduce", long)
    assert alone.allreduce(x, op="max", algorithm=None, timeout=None, async_op=False).nnz == 3
    assert alone.allreduce(x, algorithm="auto", output="auto", coding="auto").nnz == 3
    for options in (
        {"timeout": 3.0}, {"async_op": True}, {"algorithm": "ring"}, {"timeout": False},
        {"reproducible": "auto"}, {"algorithm": False}, {"op": "sum", "largest": 2},
    ):  # fmt: skip
        with pytest.raises(AssertionError, match="the long way"):
            alone.allreduce(x, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
        alone.allreduce(x, bogus=None)  # type: ignore[call-arg]


def test_the_last_call_is_told_whichever_way_it_went(alone: cl.Communicator) -> None:
    x = vector(FEW, np.ones(4, "float32"))
    ways: list[Any] = [{}, {"output": "dense"}, {}]
    for way in ways:
        alone.allreduce(x, **way)
        last = alone.last
        assert last is not None
        assert (last.kind, last.algorithm, last.messages) == ("sparse allreduce", "at_once", 0)
        assert 0 < last.seconds < 1
        alone.allreduce(np.ones(3))
        assert alone.last is not None
        assert alone.last.kind == "allreduce"


def test_a_call_beside_another_and_after_the_end_is_refused() -> None:
    one, other = cl.local(2)
    x = vector(FEW, np.ones(4, "float32"))
    waiting = threading.Thread(target=one.allreduce, args=(x,))
    waiting.start()
    while not one._handle._in_call:
        time.sleep(0.001)
    with pytest.raises(InvalidArgumentError, match="another thread is in a call"):
        one.allreduce(x)
    found = other.allreduce(x)
    waiting.join()
    np.testing.assert_array_equal(found.values, [2, 4, 2])
    for comm in (one, other):
        comm.close()
        with pytest.raises(cl.ClosedError):
            comm.allreduce(x)


def test_what_is_not_usual_is_left_to_the_long_way(alone: cl.Communicator) -> None:
    x = vector(FEW, np.ones(4, "float32"))
    changed = vector(FEW, np.ones(4, "float32"))
    changed.values = np.ones(3, "float32")
    flat = vector(FEW, np.ones(4, "float32"))
    flat.indices = FEW.reshape(2, 2)
    turned = vector(FEW, np.ones(4, "float32"))
    turned.values = np.ones(4, ">f4")
    for other, op in (
        (vector(np.repeat(FEW, 2)[::2], np.ones(4, "float32")), "sum"),
        (vector(memoryview(FEW), np.ones(4, "float32")), "sum"),
        (turned, "sum"),
        (vector(FEW, np.ones(4, "float32"), (1 << 31) + 1), "sum"),
        (changed, "sum"),
        (flat, "sum"),
        (x, "median"),
        (x, ["sum"]),
        (x, "adasum"),
    ):
        assert quick.allreduce(alone, other, op) is None
    with pytest.raises(InvalidArgumentError, match="4 indices, but 3 values"):
        alone.allreduce(changed)
    with pytest.raises(InvalidArgumentError, match="the indices have 2 dimensions"):
        alone.allreduce(flat)
    with pytest.raises(InvalidArgumentError, match="index 100"):
        alone.allreduce(vector(np.array([100]), np.ones(1)))
    with alone.group():
        assert quick.allreduce(alone, x, "sum") is None


def test_lengths_that_differ_are_told_by_both_ways() -> None:
    def work(comm: cl.Communicator) -> str:
        x = vector(FEW, np.ones(4), 100 + comm.rank)
        options: Any = {"output": "auto"} if comm.rank == 0 else {}
        with pytest.raises(cl.MismatchError) as told:
            comm.allreduce(x, **options)
        return str(told.value)

    for said in on_ranks(2, work):
        assert "of 100 " in said
        assert "of 101 " in said
