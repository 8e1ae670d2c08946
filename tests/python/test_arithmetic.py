# SPDX-License-Identifier: Apache-2.0
"""What docs/arithmetic.md says: where sums overflow, where narrow floats are rounded, NaN, ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from tests import oracle
from tests.oracle import DTYPES

P = 4
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = {name: DTYPES[name] for name in oracle.FLOATS}
NARROW = {name: FLOATS[name] for name in FLOATS if FLOATS[name].itemsize < 4}
SUMMING = [a for a in cl.algorithms() if a.kind in ("allreduce", "reduce_scatter", "reduce")]
# Of 4 ranks.
ONCE = {
    "direct",
    "direct_one_shot",
    "direct_two_shot",
    "split_allgather",
    "dissemination",
    "recursive_multiplying",
}


@pytest.fixture(scope="module")
def comms() -> Iterator[list[cl.Communicator]]:
    made = cl.local(P, timeout=20)
    yield made
    for comm in made:
        comm.close()


def ident(algorithm: cl.Algorithm) -> str:
    return f"{algorithm.kind} {algorithm.name}"


def call(comm: cl.Communicator, kind: str, x: Any, **options: Any) -> Any:
    """Reduce and return what this rank gets, as float64."""
    got = getattr(comm, kind)(x, **options)
    return np.zeros(0) if got is None else np.asarray(got).astype(np.float64)


@pytest.mark.parametrize("algorithm", SUMMING, ids=ident)
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64), BFLOAT16])
def test_averages_overflow_where_their_sums_do(
    comms: list[cl.Communicator], threads: Any, algorithm: cl.Algorithm, dtype: Any
) -> None:
    widest = np.finfo(np.float64 if dtype.itemsize == 8 else np.float32)
    large = 0.4 * float(widest.max)  # the sum of three is too large

    def average(comm: cl.Communicator) -> Any:
        x = np.full(8, large, dtype)
        return call(comm, algorithm.kind, x, op="avg", algorithm=algorithm.name)

    for got in threads(comms, average):
        assert np.isposinf(got).all()


def rounded_once(kind: str, results: list[Any], operands: Any) -> bool:
    """Whether sums of bfloat16 are as near to the exact ones as a single rounding leaves them."""
    exact = operands.astype(np.float64).sum(axis=0)
    got = np.concatenate(results) if kind == "reduce_scatter" else results[0]
    # Half of the last of eight binary digits, and a little for the float32 that it is made in.
    return bool((np.abs(got - exact) <= np.abs(exact) * 2.0**-8 * 1.001 + 1e-5).all())


def noise(p: int, count: int) -> Any:
    return np.random.default_rng(3).standard_normal((p, count)).astype(BFLOAT16)


@pytest.mark.parametrize("algorithm", SUMMING, ids=ident)
def test_bfloat16_is_rounded_once_or_on_every_hop(
    comms: list[cl.Communicator], threads: Any, algorithm: cl.Algorithm
) -> None:
    operands = noise(P, 4096)

    def total(comm: cl.Communicator) -> Any:
        x = operands[comm.rank].copy()
        return call(comm, algorithm.kind, x, algorithm=algorithm.name)

    once = rounded_once(algorithm.kind, threads(comms, total), operands)
    assert once == (algorithm.name in ONCE)


@pytest.mark.parametrize(("p", "once"), [(P, True), (16, True), (17, False)])
def test_few_ranks_round_once_unless_told_otherwise(p: int, once: bool, threads: Any) -> None:
    comms = cl.local(p, timeout=30)
    for kind in ("allreduce", "reduce_scatter"):
        for count in (32 * p, 2048 * p):
            operands = noise(p, count)

            def total(comm: cl.Communicator, kind: str = kind, x: Any = operands) -> Any:
                return call(comm, kind, x[comm.rank].copy())

            assert rounded_once(kind, threads(comms, total), operands) == once, (kind, count)
    for comm in comms:
        comm.close()


def reduced(threads: Any, comms: list[cl.Communicator], rows: Any, op: str, **options: Any) -> Any:
    """Reduce one row per rank; every rank must get the same bits, which are returned."""
    results = threads(comms, lambda comm: comm.allreduce(rows[comm.rank].copy(), op=op, **options))
    assert all(got.tobytes() == results[0].tobytes() for got in results)
    return results[0]


@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_are_added_in_float32(
    comms: list[cl.Communicator], threads: Any, name: str
) -> None:
    rows = np.random.default_rng(5).standard_normal((P, 4096)).astype(FLOATS[name])
    got = reduced(threads, comms, rows, "sum", algorithm="direct_one_shot")
    total = rows[0].astype(np.float32)
    for row in rows[1:]:
        total = total + row.astype(np.float32)
    left = total.astype(FLOATS[name])
    wide = rows.astype(np.float32)
    balanced = ((wide[0] + wide[1]) + (wide[2] + wide[3])).astype(FLOATS[name])
    assert got.tobytes() in (left.tobytes(), balanced.tobytes())


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_float8_is_rounded_as_ml_dtypes_does(threads: Any, name: str, op: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(DTYPES[name])
    rows = np.stack([np.repeat(every, 256), np.tile(every, 256)])
    pair = cl.local(2, timeout=20)
    got = reduced(threads, pair, rows, op).astype(np.float32)
    wide = rows.astype(np.float32)
    with np.errstate(invalid="ignore"):
        exact = wide[0] + wide[1] if op == "sum" else wide[0] * wide[1]
        wanted = exact.astype(DTYPES[name]).astype(np.float32)
    assert np.array_equal(got, wanted, equal_nan=True)
    for comm in pair:
        comm.close()


LARGEST = {"float16": 65504, "float8_e5m2": 57344, "float8_e4m3fn": 448}


@pytest.mark.parametrize("name", LARGEST)
def test_narrow_floats_overflow_when_they_are_stored(
    comms: list[cl.Communicator], threads: Any, name: str
) -> None:
    most = LARGEST[name]
    rows = np.array([[most] * 2, [most] * 2, [-most, most], [-most, most]], DTYPES[name])
    got = reduced(threads, comms, rows, "sum", algorithm="direct_one_shot").astype(np.float32)
    assert got[0] == 0  # no overflow on the way
    assert np.isnan(got[1]) if name == "float8_e4m3fn" else np.isposinf(got[1])


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", ["min", "max"])
def test_nan_of_any_rank_is_the_result(
    comms: list[cl.Communicator], threads: Any, name: str, op: str
) -> None:
    rows = np.ones((P, P + 1))
    for rank in range(P):
        rows[rank, rank] = np.nan
    got = reduced(threads, comms, rows.astype(FLOATS[name]), op).astype(np.float32)
    assert np.isnan(got[:P]).all()
    assert got[P] == 1


@pytest.mark.parametrize("name", FLOATS)
def test_minus_zero_is_less_than_zero(
    comms: list[cl.Communicator], threads: Any, name: str
) -> None:
    rows = np.zeros((P, P))
    for rank in range(P):
        rows[rank, rank] = -0.0
    for algorithm in (a.name for a in SUMMING if a.kind == "allreduce" and a.fits(P)):
        for op in ("min", "max"):
            got = reduced(threads, comms, rows.astype(FLOATS[name]), op, algorithm=algorithm)
            assert np.signbit(got.astype(np.float32)).all() == (op == "min")


def test_logical_results_are_zero_and_one(comms: list[cl.Communicator], threads: Any) -> None:
    rows = np.array([[2, 0, 0.0, np.nan], [3, 0, -0.0, 1], [4, 5, 0, 1], [5, 0, 0, 1]])
    for op, wanted in (("land", [1, 0, 0, 1]), ("lor", [1, 1, 0, 1]), ("lxor", [0, 1, 0, 0])):
        assert reduced(threads, comms, rows, op).tolist() == wanted
    alone = cl.local(1)[0]
    assert alone.allreduce(np.array([7, 0]), op="lor").tolist() == [7, 0]  # nothing is folded


def test_bool_is_or_and_and(comms: list[cl.Communicator], threads: Any) -> None:
    rows = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1]], bool)
    for op in ("sum", "max", "lor", "bor"):
        assert reduced(threads, comms, rows, op).tolist() == [False, True, True]
    for op in ("prod", "min", "land", "band"):
        assert reduced(threads, comms, rows, op).tolist() == [False, False, True]
    for op in ("lxor", "bxor"):
        assert reduced(threads, comms, rows, op).tolist() == [False, True, False]


@pytest.mark.parametrize("name", ["float32_int32", "float64_int64"])
def test_minloc_takes_the_smaller_index_and_nan_first(
    comms: list[cl.Communicator], threads: Any, name: str
) -> None:
    nan = np.nan
    values = np.array([[3, 1, 0.0, nan], [1, 1, -0.0, 2], [1, 1, 0.0, nan], [2, 1, 0.0, 1]])
    rows = np.zeros((P, 4), DTYPES[name])
    rows["value"], rows["index"] = values, [[9], [8], [5], [7]]
    for algorithm in (a.name for a in SUMMING if a.kind == "allreduce" and a.fits(P)):
        low = reduced(threads, comms, rows, "minloc", algorithm=algorithm)
        high = reduced(threads, comms, rows, "maxloc", algorithm=algorithm)
        assert low["index"].tolist() == [5, 5, 5, 5]
        assert high["index"].tolist() == [9, 5, 5, 5]
        assert np.isnan(low["value"][3])
        assert low["value"].tolist()[:3] == [1, 1, 0]
        assert high["value"].tolist()[:3] == [3, 1, 0]


def test_complex_numbers_are_multiplied_by_the_formula(
    comms: list[cl.Communicator], threads: Any
) -> None:
    rows = np.array([[1 + 2j, 1e30], [3 - 1j, 1e30j], [1j, 1], [2, 1]], np.complex64)
    got = reduced(threads, comms, rows, "prod")
    assert got[0] == -10 + 10j
    assert not np.isfinite(got[1])
    assert reduced(threads, comms, rows[:, :1], "avg")[0] == (6 + 2j) / 4
