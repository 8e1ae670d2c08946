# SPDX-License-Identifier: Apache-2.0
"""Calls like one before: vectors that then would have gone sooner with the first step do so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from tests.python.ranks import last, on_ranks, on_wired_ranks

LENGTH = 1_000_000


def vector(entries: int, seed: int, length: int = LENGTH, dtype: str = "float32") -> cl.Sparse:
    rng = np.random.default_rng(seed)
    places = rng.choice(length, entries, replace=False).astype(np.int32)
    return cl.Sparse(places, rng.integers(1, 100, entries).astype(dtype), length)


def dense_sum(vectors: list[cl.Sparse], dtype: str = "float32") -> Any:
    total = np.zeros(vectors[0].length, dtype)
    for x in vectors:
        np.add.at(total, x.indices, x.values)
    return total


def check(found: Any, expected: Any) -> None:
    if isinstance(found, np.ndarray):
        np.testing.assert_array_equal(found, expected)
        return
    assert np.all(np.diff(found.indices) > 0)
    total = np.zeros(found.length, expected.dtype)
    total[found.indices] = found.values
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("p", [2, 4])
def test_between_machines_the_second_call_takes_one_step(p: int) -> None:
    vectors = [vector(1000, rank) for rank in range(p)]

    def work(comm: cl.Communicator) -> list[tuple[str, Any]]:
        calls = []
        for _ in range(4):
            found = comm.allreduce(vectors[comm.rank])
            calls.append((last(comm).algorithm, found))
        return calls

    expected = dense_sum(vectors)
    for calls in on_wired_ranks(p, work):
        assert calls[0][0] != "at_once"
        assert {name for name, _ in calls[1:]} == {"at_once"}
        for _, found in calls:
            check(found, expected)


def test_vectors_that_grow_find_another_way_and_back() -> None:
    # of every rank, call by call
    sizes = [1000, 1000, 1010, 3000, 3000, 20_000, 20_000, 50, 1000, 1000]
    again = [vector(n, 7) for n in sizes]

    def work(comm: cl.Communicator) -> list[bool]:
        names = []
        for x in again:
            check(comm.allreduce(x), 3 * dense_sum([x]))
            names.append(last(comm).algorithm == "at_once")
        return names

    for at_once in on_wired_ranks(3, work):
        # 3000 do not fit in the room of 1000, 20000 in none; 50 need none.
        assert at_once == [False, True, True, False, at_once[4], False, False, True, False, True]


def test_room_is_of_calls_that_are_alike() -> None:
    short, long = vector(1000, 1), vector(1000, 2, LENGTH + 1)

    def work(comm: cl.Communicator) -> list[str]:
        names = []
        for x, op in ((short, "sum"), (long, "sum"), (short, "max"), (short, "sum")):
            comm.allreduce(x, op=op)
            names.append(last(comm).algorithm)
        comm.allreduce(short, algorithm="ssar_split_allgather")
        names.append(last(comm).algorithm)
        return names

    for names in on_wired_ranks(2, work):
        assert [name == "at_once" for name in names] == [False, False, False, True, False]
        assert names[4] == "ssar_split_allgather"


def test_ranks_of_which_one_has_more_than_the_room() -> None:
    def work(comm: cl.Communicator) -> None:
        for call in range(12):
            vectors = [vector(4000 if (call + r) % 5 == 0 else 900, r) for r in range(3)]
            check(comm.allreduce(vectors[comm.rank]), dense_sum(vectors))

    on_wired_ranks(3, work)
    on_ranks(3, work)


@pytest.mark.parametrize("same", [True, "any_p"])
def test_reproducible_sums_are_the_same_whichever_way_they_go(same: Any) -> None:
    rng = np.random.default_rng(5)
    places = [np.sort(rng.choice(20_000, 1000, replace=False)).astype(np.int32) for _ in range(4)]
    values = [(rng.standard_normal(1000) * 10.0 ** rng.integers(-9, 9, 1000)) for _ in range(4)]

    def work(comm: cl.Communicator) -> tuple[list[str], list[bytes]]:
        x = cl.Sparse(places[comm.rank], values[comm.rank].astype("float32"), 20_000)
        names, sums = [], []
        for _ in range(3):
            found = comm.allreduce(x, reproducible=same, output="dense")
            names.append(last(comm).algorithm)
            sums.append(found.tobytes())
        return names, sums

    ways = on_wired_ranks(4, work)
    assert "at_once" in ways[0][0]
    assert len({found for _, sums in ways for found in sums}) == 1


@settings(max_examples=15, deadline=None)
@given(
    calls=st.lists(
        st.tuples(
            st.lists(st.sampled_from([0, 3, 100, 125, 600, 1400, 2500]), min_size=3, max_size=3),
            st.sampled_from([5000, 70_000, LENGTH]),
            st.sampled_from(["float32", "int64", "float16"]),
        ),
        min_size=2,
        max_size=12,
    ),
    wired=st.booleans(),
)
def test_any_order_of_calls(calls: list[tuple[list[int], int, str]], wired: bool) -> None:
    def work(comm: cl.Communicator) -> None:
        for number, (entries, length, dtype) in enumerate(calls):
            vectors = [vector(n, 10 * number + r, length, dtype) for r, n in enumerate(entries)]
            check(comm.allreduce(vectors[comm.rank]), dense_sum(vectors, dtype))

    (on_wired_ranks if wired else on_ranks)(3, work)
