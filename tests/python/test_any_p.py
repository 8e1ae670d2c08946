# SPDX-License-Identifier: Apache-2.0
"""``reproducible="any_p"`` and ``exact_sum``: exact sums, whoever hands in what."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from tests.canonical import FLOATS, NARROW, exact, operands
from tests.oracle import DTYPES
from tests.python.ranks import on_ranks

N = 90
CONTRIBUTIONS = 8
WHOLE = ("float32", "float64", "complex64", "complex128")


def grouped(rows: Any, p: int) -> list[Any]:
    """Give rank r some of the rows: unequal numbers, none to some ranks."""
    cuts = sorted(np.random.default_rng(p).integers(0, len(rows) + 1, p - 1))
    return np.split(rows, cuts)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["sum", "avg"])
def test_the_same_contributions_give_the_same_bits_among_any_number_of_ranks(
    dtype: str, op: str
) -> None:
    rows = np.stack([operands(dtype, r, N) for r in range(CONTRIBUTIONS)])
    if dtype in WHOLE:
        expected = exact(list(rows), op).tobytes()
    else:
        wide = rows.astype(np.float64).sum(axis=0)  # exact: exponents are near each other
        expected = (wide / (CONTRIBUTIONS if op == "avg" else 1)).astype(rows.dtype).tobytes()

    for p in range(1, CONTRIBUTIONS + 1):
        parts = grouped(rows[np.random.default_rng(p).permutation(CONTRIBUTIONS)], p)

        def run(comm: cl.Communicator, parts: list[Any] = parts) -> None:
            mine = parts[comm.rank]
            assert comm.exact_sum(mine, op=op).tobytes() == expected
            out = np.empty(N, mine.dtype)
            either = list(mine) or mine
            assert comm.exact_sum(either, out, op=op, algorithm="ring") is out
            assert out.tobytes() == expected

        on_ranks(p, run)

    def each(comm: cl.Communicator) -> None:
        for algorithm in ("ring", "recursive_doubling", None):
            x = rows[comm.rank].copy()
            got = comm.allreduce(x, op=op, reproducible="any_p", algorithm=algorithm)
            assert got.tobytes() == expected

    on_ranks(CONTRIBUTIONS, each)


@given(
    values=st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4),
        min_size=1, max_size=12,
    ),
    p=st.integers(1, 4),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_float64_is_what_fsum_gives(values: list[list[float]], p: int) -> None:
    rows = np.array(values)
    expected = [nearest(column) for column in rows.T.tolist()]
    parts = np.array_split(rows, p)

    def run(comm: cl.Communicator) -> None:
        assert comm.exact_sum(parts[comm.rank]).tolist() == expected

    on_ranks(p, run)


def nearest(column: list[float]) -> float:
    """Return the sum; fsum() refuses some that fit, because partial sums do not."""
    try:
        return math.fsum(column) + 0.0
    except OverflowError:
        total = sum(map(Fraction, column))
    try:
        return total.numerator / total.denominator
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@pytest.mark.parametrize("dtype", [*WHOLE[:2], *NARROW])
def test_infinities_nans_and_zeros(dtype: str) -> None:
    kind = DTYPES[dtype]
    inf, nan = math.inf, math.nan
    columns = [[1, inf, 2], [-inf, 3, -inf], [inf, 1, -inf], [nan, 1, 2], [-0.0] * 3, [1, -1, 0]]
    if dtype == "float8_e4m3fn":
        columns[:3] = [[nan, 1, 1]] * 3
    rows = np.array(columns).T.astype(kind)
    with np.errstate(invalid="ignore"):
        wanted = rows.astype(np.float64).sum(axis=0)

    def run(comm: cl.Communicator) -> None:
        got = comm.allreduce(rows[comm.rank].copy(), reproducible="any_p").astype(np.float64)
        np.testing.assert_array_equal(got, wanted)
        assert not np.signbit(got[4:]).any()  # a zero is +0

    on_ranks(3, run)


def test_averages_do_not_overflow() -> None:
    def run(comm: cl.Communicator) -> None:
        x = np.full(3, 1e308)
        assert comm.allreduce(x, op="avg", reproducible="any_p").tolist() == [1e308] * 3

    on_ranks(4, run)


def test_every_collective_that_folds() -> None:
    p = 5
    rows = [operands("float32", r, 40) for r in range(p)]
    wish: Any = {"reproducible": "any_p"}

    def run(comm: cl.Communicator) -> None:
        rank, mine = comm.rank, rows[comm.rank]
        whole = exact(rows, "sum")
        assert (
            comm.reduce_scatter(mine.copy(), **wish).tolist() == whole.reshape(p, 8)[rank].tolist()
        )
        lengths = [0, 3, 30, 6, 1]
        first = sum(lengths[:rank])
        part = comm.reduce_scatterv(mine.copy(), lengths, **wish)
        assert part.tolist() == whole[first : first + lengths[rank]].tolist()
        for root in (0, 3):
            got = comm.reduce(mine.copy(), root=root, **wish)
            assert got is None or got.tolist() == whole.tolist()
        assert comm.scan(mine.copy(), **wish).tolist() == exact(rows[: rank + 1], "sum").tolist()
        before = comm.exscan(mine.copy(), **wish)
        assert before.tolist() == (exact(rows[:rank], "sum") if rank else mine).tolist()
        out = np.empty_like(mine)
        assert comm.allreduce(mine, out, **wish).tolist() == whole.tolist()
        assert comm.allreduce(np.zeros(0, np.float32), **wish).size == 0
        prepared = comm.persistent.allreduce(mine.copy(), **wish)
        later = comm.allreduce(mine.copy(), async_op=True, **wish)
        assert prepared().tolist() == later.wait().tolist() == whole.tolist()
        with comm.group():
            fused = [comm.allreduce(x, **wish) for x in np.split(mine.copy(), 4)]
        assert np.concatenate(fused).tolist() == whole.tolist()

    on_ranks(p, run)


def test_what_is_not_there_is_refused() -> None:
    def run(comm: cl.Communicator) -> None:
        x = np.ones((2, 3), np.float32)
        with pytest.raises(cl.UnsupportedError, match="prod of float32 depends on the number"):
            comm.allreduce(x, op="prod", reproducible="any_p")
        with pytest.raises(cl.InvalidArgumentError, match="exact: leave accumulate out"):
            comm.allreduce(x, accumulate="float64", reproducible="any_p")
        for wrong, words in (
            ([], "a rank without contributions gives an array of shape"),
            (np.float32(1), "has no axis of contributions"),
            ([np.ones(2), np.ones(3)], "contributions are alike"),
        ):
            with pytest.raises(cl.InvalidArgumentError, match=words):
                comm.exact_sum(wrong)
        with pytest.raises(cl.InvalidArgumentError, match="out is float32 of shape"):
            comm.exact_sum(x, np.ones(2, np.float32))
        with pytest.raises(cl.InvalidArgumentError, match="exact_sum: op 'max' is unknown"):
            comm.exact_sum(x, op="max")
        with pytest.raises(cl.UnsupportedError, match="integers are summed exactly"):
            comm.exact_sum(np.ones((2, 3), np.int32))
        assert comm.exact_sum(x).tolist() == [4, 4, 4]

    on_ranks(2, run)


def test_ranks_that_hand_in_other_things_are_told() -> None:
    def run(comm: cl.Communicator) -> str:
        x = np.ones((2, 3), np.float32 if comm.rank else np.float64)
        with pytest.raises(cl.MismatchError) as error:
            comm.exact_sum(x)
        return str(error.value)

    for said in on_ranks(2, run):
        assert "exact_sum of 3 float32 (sum)" in said
        assert "exact_sum of 3 float64 (sum)" in said


@pytest.mark.parametrize("dtype", WHOLE)
def test_infinities_and_nans_of_one_rank_add_up(dtype: str) -> None:
    inf, nan = np.inf, np.nan
    cases = [
        [nan, nan],
        [inf, inf],
        [inf, -inf],
        [nan] * 5,
        [-inf] * 9,
        [nan, inf, 1.0],
        [inf, 1.0],
    ]

    def each(comm: cl.Communicator) -> None:
        for case in cases:
            got = comm.exact_sum([np.array([value], dtype) for value in case])
            np.testing.assert_array_equal(got.real, [sum(case) * comm.size])

    for p in (1, 2, 3):
        on_ranks(p, each)
