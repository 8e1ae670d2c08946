# SPDX-License-Identifier: Apache-2.0
"""What sparse vectors take on their way: coded indices, and sums in a few bits."""

from __future__ import annotations

from functools import partial
from math import ceil, lgamma, log
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import collectives as cl
from tests.python.ranks import last, on_ranks, on_wired_ranks
from tests.python.test_sparse import ALLREDUCES, as_dense, contribution, dense_sum

AMONG = pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])


def scattered(rank: int, length: int, entries: int, dtype: str = "float32") -> cl.Sparse:
    """Values anywhere."""
    rng = np.random.default_rng((rank, length, entries))
    places = np.sort(rng.choice(length, entries, replace=False)).astype(np.int64)
    return cl.Sparse(places, rng.standard_normal(entries).astype(dtype), length)


def entropy_bytes(length: int, entries: int) -> float:
    """Of the indices of so many elements that may lie anywhere."""
    nats = lgamma(length + 1) - lgamma(entries + 1) - lgamma(length - entries + 1)
    return nats / log(2) / 8


def bytes_taken(among: Any, x: list[cl.Sparse], coding: Any, algorithm: str) -> list[int]:
    """Return what each rank sent. The sum is right."""

    def body(comm: cl.Communicator) -> Any:
        result = comm.allreduce(x[comm.rank], algorithm=algorithm, coding=coding)
        return as_dense(result), last(comm).nbytes

    answers = among(len(x), body)
    for result, _ in answers:
        np.testing.assert_allclose(result, dense_sum(x), rtol=1e-5, atol=1e-6)
    return [taken for _, taken in answers]


@pytest.mark.parametrize("density", [1e-4, 1e-3, 0.01, 0.05, 0.2, 0.45])
def test_coded_indices_take_two_bits_above_their_entropy_at_most(density: float) -> None:
    length = 1 << 20
    entries = int(length * density) // 2 * 2  # whole words
    x = [scattered(rank, length, entries) for rank in range(2)]
    heads = 8 + 8  # the call's name, and the word of the only stretch
    raw = bytes_taken(on_ranks, x, "raw", "ssar_recursive_double")
    assert raw == [heads + 8 * entries] * 2
    least = heads + 4 * entries + entropy_bytes(length, entries)
    for taken in bytes_taken(on_ranks, x, "coded", "ssar_recursive_double"):
        assert least - 1 < taken <= least + entries * 2 / 8 + 8
    for taken in bytes_taken(on_ranks, x, "quick", "ssar_recursive_double"):
        assert taken <= heads + entries * (4 + 2) + 4 * ceil(length / 65536) + 8


def test_ranks_of_one_memory_send_raw_indices_and_others_coded_ones() -> None:
    x = [scattered(rank, 100_000, 2000) for rank in range(2)]
    for among, usual in ((on_ranks, "raw"), (on_wired_ranks, "coded")):
        expected = bytes_taken(among, x, usual, "ssar_split_allgather")
        for coding in (None, "auto"):
            assert bytes_taken(among, x, coding, "ssar_split_allgather") == expected
    assert bytes_taken(on_wired_ranks, x, "raw", "ssar_split_allgather") > expected


@AMONG
@pytest.mark.parametrize("algorithm", [a for a in ALLREDUCES if a != "dense"])
def test_all_codings_give_the_same_bits(among: Any, algorithm: str) -> None:
    rng = np.random.default_rng(1)
    for p, length, most in ((3, 70_000, 700), (4, 3000, 2500), (5, 40, 3)):
        x = [contribution(rng, length, int(rng.integers(0, most)), "float32") for _ in range(p)]

        def body(comm: cl.Communicator, x: list[cl.Sparse] = x) -> list[Any]:
            wishes: tuple[Any, ...] = ("raw", "coded", "quick")
            return [
                as_dense(comm.allreduce(x[comm.rank], algorithm=algorithm, coding=wish)).tobytes()
                for wish in wishes
            ]

        answers = among(p, body)
        assert {bits for answer in answers for bits in answer} == {dense_sum(x).tobytes()}


def test_parts_that_are_nearly_full_take_no_more_than_all_values() -> None:
    length, heads = 8000, 16
    for entries in (3000, 5000, 7000, 8000):
        x = [scattered(7, length, entries), scattered(7, length, entries)]
        raw = bytes_taken(on_ranks, x, "raw", "ssar_recursive_double")
        assert raw == [heads + min(8 * entries, 4 * length)] * 2
        coded = bytes_taken(on_ranks, x, "coded", "ssar_recursive_double")
        assert coded[0] <= heads + min(length // 8 + 4 * entries, 4 * length)


def test_indices_of_eight_bytes_are_coded() -> None:
    length = 1 << 34
    rng = np.random.default_rng(2)
    x = [cl.Sparse(np.unique(rng.integers(0, length, 3000)), np.ones(3000), length) for _ in "ab"]

    def body(comm: cl.Communicator, coding: Any) -> Any:
        how: dict[str, Any] = {"algorithm": "ssar_recursive_double", "output": "sparse"}
        result = comm.allreduce(x[comm.rank], coding=coding, **how)
        return result, last(comm).nbytes

    expected = np.union1d(x[0].indices, x[1].indices)
    for coding, most in (("raw", 16 + 3000 * 16), ("coded", 3000 * 8 + 3000 * 28 // 8)):
        for result, taken in on_ranks(2, partial(body, coding=coding)):
            np.testing.assert_array_equal(result.indices, expected)
            assert taken <= most


def quantised(among: Any, x: list[cl.Sparse], compress: cl.QSGD, calls: int = 1) -> list[Any]:
    """Results of several calls, of which all ranks get the same bits."""

    def body(comm: cl.Communicator) -> list[npt.NDArray[Any]]:
        return [as_dense(comm.allreduce(x[comm.rank], compress=compress)) for _ in range(calls)]

    answers: list[list[npt.NDArray[Any]]] = among(len(x), body)
    for answer in answers:
        for mine, first in zip(answer, answers[0], strict=True):
            assert mine.tobytes() == first.tobytes()
    return answers[0]


def steps(sums: npt.NDArray[Any], p: int, bits: int) -> npt.NDArray[Any]:
    """Of each element: the distance of two levels, with an eighth for formats of few digits."""
    whole = np.zeros(sums.size)
    bounds = [len(part) for part in np.array_split(sums, p)]
    at = 0
    for part in bounds:  # owners cut their own parts into buckets
        for first in range(at, at + part, 1024):
            bucket = slice(first, min(first + 1024, at + part))
            whole[bucket] = np.abs(sums[bucket]).max() / (2 ** (bits - 1) - 1) * 1.125
        at += part
    return whole


@AMONG
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_quantised_sums_are_within_one_step(among: Any, bits: int, dtype: str) -> None:
    for p in (2, 3, 5):
        x = [scattered(rank, 10_001, 1500, dtype) for rank in range(p)]
        sums = np.sum([part.dense().astype(np.float64) for part in x], axis=0)
        (result,) = quantised(among, x, cl.QSGD(bits, seed=3))
        rounding = np.abs(sums) * (1e-2 if dtype == "float16" else 1e-6)
        assert result.dtype == np.dtype(dtype)
        assert np.all(np.abs(result - sums) <= steps(sums, p, bits) + rounding)
        assert np.abs(result - sums).max() > 0


def test_quantised_sums_are_right_on_average_and_repeat() -> None:
    x = [scattered(rank, 4000, 2000) for rank in range(2)]
    sums = dense_sum(x).astype(np.float64)
    first = quantised(on_ranks, x, cl.QSGD(4, seed=3), calls=200)
    again = quantised(on_ranks, x, cl.QSGD(4, seed=3), calls=2)
    assert [a.tobytes() for a in again] == [a.tobytes() for a in first[:2]]
    assert first[0].tobytes() != first[1].tobytes()
    (wired,) = quantised(on_wired_ranks, x, cl.QSGD(4, seed=3))
    assert wired.tobytes() == first[0].tobytes()
    (other,) = quantised(on_ranks, x, cl.QSGD(4, seed=4))
    assert other.tobytes() != first[0].tobytes()
    step = steps(sums, 2, 4)
    off = np.mean(np.asarray(first, np.float64), axis=0) - sums
    assert np.all(np.abs(off) <= 6 * step / 2 / np.sqrt(200))
    assert abs(np.mean(off / step)) <= 6 / 2 / np.sqrt(200 * 4000)


def test_quantised_sums_take_their_bits() -> None:
    length = 64 * 1024
    x = [scattered(rank, length, 100) for rank in range(4)]
    for part in x:
        part.indices[0] = 0  # the same place, else all but few buckets are zero

    def body(comm: cl.Communicator, bits: int) -> Any:
        full = [np.arange(length, dtype=np.int32)] if comm.rank == 0 else [x[comm.rank].indices]
        values = np.ones(len(full[0]), np.float32)
        comm.allreduce(cl.Sparse(full[0], values, length), compress=cl.QSGD(bits))
        assert last(comm).algorithm == "dsar_split_allgather"
        return last(comm).nbytes

    for bits in (2, 4, 8):
        taken = on_ranks(4, partial(body, bits=bits))
        parts = 3 * (length // 4) * bits // 8 + 3 * (length // 4 // 1024) * 4
        assert parts < taken[1] <= parts + 100 * 8 + 200


def test_what_is_no_number_is_not_rounded_away() -> None:
    length = 5000
    x = [scattered(rank, length, length) for rank in range(2)]
    x[0].values[10], x[1].values[4000] = np.nan, -np.inf
    sums = dense_sum(x)
    (result,) = quantised(on_ranks, x, cl.QSGD(2))
    odd = ~np.isfinite(sums)
    np.testing.assert_array_equal(result[odd], sums[odd])
    np.testing.assert_array_equal(result[:1024], sums[:1024])  # their bucket travels as it is
    assert np.all(np.isfinite(result[~odd]))
    assert np.any(result[1024:2048] != sums[1024:2048])


def test_bad_wishes_are_refused() -> None:
    wrong = cl.InvalidArgumentError
    with pytest.raises(wrong, match="2, 4 or 8"):
        cl.QSGD(bits=3)
    with pytest.raises(wrong, match="seed"):
        cl.QSGD(seed=-1)

    def body(comm: cl.Communicator) -> None:
        x = scattered(0, 100, 10)
        whole = cl.Sparse(np.arange(3), np.arange(3), 4)
        for array, words, how in (
            (x, "coding", {"coding": "zip"}),
            (x, r"cl\.QSGD", {"compress": 4}),
            (x, "dsar_split_allgather", {"compress": cl.QSGD(), "algorithm": "ring"}),
            (x, "dsar_split_allgather", {"compress": cl.QSGD(), "algorithm": "dense"}),
            (whole, "int64 are not quantised", {"compress": cl.QSGD()}),
            (np.ones(3), "QSGD is there for sparse", {"compress": cl.QSGD()}),
            (np.ones(3), "coding is there for sparse", {"coding": "raw"}),
            (np.ones(3), "output is there for sparse", {"output": "dense"}),
            (np.ones(3), "dense_above is there for sparse", {"dense_above": 0.5}),
        ):
            with pytest.raises(wrong, match=words):
                comm.allreduce(array, **how)
        np.testing.assert_array_equal(as_dense(comm.allreduce(x)), 2 * x.dense())

    on_ranks(2, body)


@pytest.mark.parametrize(
    "wishes",
    [
        [{"coding": "raw"}, {"coding": "coded"}],
        [{"compress": cl.QSGD(4)}, {}],
        [{"compress": cl.QSGD(4, seed=1)}, {"compress": cl.QSGD(4, seed=2)}],
    ],
)
def test_ranks_that_disagree_are_told(wishes: list[dict[str, Any]]) -> None:
    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.MismatchError, match=r"QSGD|coded"):
            comm.allreduce(scattered(comm.rank, 100, 10), **wishes[comm.rank])

    on_ranks(2, body)
