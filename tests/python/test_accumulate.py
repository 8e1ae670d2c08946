# SPDX-License-Identifier: Apache-2.0
"""``accumulate=``: the result is the exact one, rounded once, whatever the algorithm."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.oracle import DTYPES
from tests.python.ranks import on_ranks

BFLOAT16 = DTYPES["bfloat16"]
# Dtype and what it is accumulated in; operands are integers below the first number times powers of
# two below the second: their sums are exact in float32, and mostly not in the dtype.
CASES = [
    ("bfloat16", "float32", 256, 10),
    ("float16", "float32", 2048, 2),
    ("float8_e5m2", "float32", 8, 6),
    ("float8_e4m3fn", "float32", 8, 3),
    ("bfloat16", "float64", 256, 10),
    ("float8_e5m2", "float64", 8, 6),
    ("float32", "float64", 1 << 24, 20),
]
FOLDING = [
    a for a in cl.algorithms()
    if a.kind in ("allreduce", "reduce_scatter", "reduce", "scan", "exscan")
]  # fmt: skip
COUNT = 240  # splits into equal parts


def operand(case: tuple[str, str, int, int], rank: int) -> Any:
    dtype, _, integers, powers = case
    draw = np.random.default_rng([rank, integers, powers])
    scale = np.exp2(draw.integers(0, powers, COUNT))
    return (draw.integers(1 - integers, integers, COUNT) * scale).astype(DTYPES[dtype])


@lru_cache
def numbers(dtype: str) -> tuple[Any, Any]:
    """All finite numbers of a narrow dtype in ascending order, and whether each is even."""
    word = np.dtype(f"u{DTYPES[dtype].itemsize}")
    words = np.arange(2 ** (8 * word.itemsize), dtype=word)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = words.view(DTYPES[dtype]).astype(np.float64)
    finite = np.isfinite(values) & ~(np.signbit(values) & (values == 0))
    order = np.argsort(values[finite], kind="stable")
    return values[finite][order], words[finite][order] % 2 == 0


def rounded(exact: Any, dtype: str) -> Any:
    """Round float64 once, by looking for the nearest number there is."""
    if dtype == "float32":
        return exact.astype(np.float32).astype(np.float64)
    values, even = numbers(dtype)
    above = np.clip(np.searchsorted(values, exact), 1, len(values) - 1)
    left, right = exact - values[above - 1], values[above] - exact
    down = (left < right) | ((left == right) & even[above - 1])
    return np.where(down, values[above - 1], values[above])


def expected(algorithm: cl.Algorithm, case: tuple[str, str, int, int], op: str, p: int) -> Any:
    """What each rank gets, (p, COUNT), NaN for what it does not."""
    rows = np.stack([operand(case, r).astype(np.float64) for r in range(p)])
    if algorithm.kind in ("scan", "exscan"):
        exact = np.cumsum(rows, axis=0)
        if algorithm.kind == "exscan":
            exact = np.concatenate([rows[:1], exact[:-1]])  # rank 0 keeps what it had
    else:
        exact = np.broadcast_to(rows.sum(axis=0), rows.shape)
    if op == "avg":  # divided where it is accumulated, before the one rounding
        exact = (exact.astype(case[1]) / np.dtype(case[1]).type(p)).astype(np.float64)
    return rounded(exact, case[0])


@pytest.mark.parametrize("p", [2, 3, 5, 8])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} in {case[1]}")
def test_every_algorithm_rounds_once(p: int, case: tuple[str, str, int, int]) -> None:
    fitting = [a for a in FOLDING if a.fits(p)]

    def run(comm: cl.Communicator) -> int:
        for algorithm in fitting:
            for op in ("sum",) if "scan" in algorithm.kind else ("sum", "avg"):
                wanted = expected(algorithm, case, op, p)[comm.rank]
                if algorithm.kind == "reduce_scatter":
                    wanted = wanted.reshape(p, -1)[comm.rank]
                x = operand(case, comm.rank)
                collective = getattr(comm, algorithm.kind)
                got = collective(x, op=op, accumulate=case[1], algorithm=algorithm.name)
                if got is not None:
                    assert got.dtype == x.dtype
                    assert got.astype(np.float64).tolist() == wanted.tolist(), (algorithm.name, op)
        return len(fitting)

    assert min(on_ranks(p, run)) > 15


def test_without_it_partial_sums_are_rounded_on_their_way() -> None:
    """Which shows that the operands above tell the difference."""
    case = CASES[0]
    ring = next(a for a in FOLDING if (a.kind, a.name) == ("allreduce", "ring"))
    wanted = expected(ring, case, "sum", 5)[0].tolist()

    def run(comm: cl.Communicator) -> bool:
        x = operand(case, comm.rank)
        return bool(comm.allreduce(x, algorithm="ring").astype(np.float64).tolist() == wanted)

    assert on_ranks(5, run) == [False] * 5


@pytest.mark.parametrize("p", [1, 3])
def test_arrays_of_every_shape_and_place(p: int) -> None:
    """Read-only and strided arrays, an ``out``, parts of unequal length, another root."""
    case = CASES[0]
    name: dict[str, Any] = {"accumulate": np.float32, "algorithm": None if p == 1 else "ring"}
    wanted = rounded(sum(operand(case, r).astype(np.float64) for r in range(p)), "bfloat16")

    def same(got: Any, part: Any = slice(None)) -> None:
        assert np.asarray(got).astype(np.float64).ravel().tolist() == wanted[part].tolist()

    def run(comm: cl.Communicator) -> None:
        x = operand(case, comm.rank)
        given, strided = x.copy(), np.zeros((COUNT, 2), BFLOAT16)
        out = np.zeros((2, COUNT // 2), BFLOAT16)
        x.flags.writeable = False
        strided[:, 0] = x
        same(comm.allreduce(x, **name))
        assert comm.allreduce(x.reshape(2, -1), out, **name) is out
        same(out)
        same(comm.allreduce(strided[:, 0], **name))
        assert not strided[:, 1].any()
        counts = [COUNT] if p == 1 else [0, 200, 40]
        first = sum(counts[: comm.rank])
        part = comm.reduce_scatterv(x, counts, op="sum", accumulate=np.dtype("f4"))
        same(part, slice(first, first + counts[comm.rank]))
        result = comm.reduce(x, root=p - 1, accumulate="float32", algorithm="chain")
        assert (result is None) == (comm.rank != p - 1)
        if result is not None:
            same(result)
        assert comm.allreduce(np.zeros(0, BFLOAT16), **name).size == 0
        assert x.tobytes() == given.tobytes()

    on_ranks(p, run)


def test_later_together_and_in_structures() -> None:
    case = CASES[0]
    wanted = rounded(sum(operand(case, r).astype(np.float64) for r in range(4)), "bfloat16")
    options: dict[str, Any] = {"accumulate": "float32", "algorithm": "ring"}

    def run(comm: cl.Communicator) -> None:
        mine = operand(case, comm.rank)
        pending = [comm.allreduce(mine.copy(), async_op=True, **options) for _ in range(3)]
        with comm.group():
            fused = [comm.allreduce(part, **options) for part in np.split(mine.copy(), 4)]
        single = np.full(3, 2, np.float32)  # is accumulated in float32 anyway
        tree = comm.allreduce({"a": mine.copy(), "b": (single,)}, **options)
        assert tree["b"][0].tolist() == [8, 8, 8]
        results = [*(p.wait() for p in pending), np.concatenate(fused), tree["a"]]
        assert all(r.astype(np.float64).tolist() == wanted.tolist() for r in results)

    on_ranks(4, run)


def test_calls_of_a_group_that_accumulate_otherwise_share_no_message() -> None:
    def run(comm: cl.Communicator) -> int:
        x = np.ones(3, BFLOAT16)
        before = comm.sequence
        with comm.group():
            comm.allreduce(x.copy())
            comm.allreduce(x.copy(), accumulate="float32")
            comm.allreduce(x.copy(), accumulate="float32")
        return comm.sequence - before

    assert on_ranks(2, run) == [2, 2]


def test_persistent_calls_widen_what_the_array_holds_when_they_begin() -> None:
    case = CASES[0]
    wanted = rounded(sum(operand(case, r).astype(np.float64) for r in range(3)), "bfloat16")

    def run(comm: cl.Communicator) -> None:
        x, out = np.zeros(COUNT, BFLOAT16), np.ones(COUNT, BFLOAT16)
        call = comm.persistent.allreduce(x, out, accumulate="float32", algorithm="ring")
        other = comm.allreduce(np.ones(3, np.float16), accumulate="float32")
        assert other.tolist() == [3, 3, 3]
        assert call() is out
        assert not out.any()
        x[...] = operand(case, comm.rank)
        call.start()
        assert call.wait().astype(np.float64).tolist() == wanted.tolist()

    on_ranks(3, run)


@pytest.mark.parametrize("op", ["min", "max", "prod", "land", "lxor"])
def test_operations_that_need_no_more_digits(op: str) -> None:
    def run(comm: cl.Communicator) -> None:
        x = np.array([comm.rank, 1, -0.0, 2], np.float16)
        want, got = comm.allreduce(x.copy(), op=op), comm.allreduce(x, op=op, accumulate="float32")
        assert got.tobytes() == want.tobytes()

    on_ranks(3, run)


def test_complex_numbers() -> None:
    def run(comm: cl.Communicator) -> Any:
        x = np.array([2**24 if comm.rank == 0 else 1 + 1j], np.complex64)
        return comm.allreduce(x, accumulate=np.complex128, algorithm="ring").tolist()

    assert on_ranks(4, run) == [[2**24 + 4 + 3j]] * 4  # 2**24 + 3 is a tie


def test_an_operation_of_the_program_gets_the_wider_arrays() -> None:
    seen: set[Any] = set()

    def plus(left: Any, right: Any) -> Any:
        seen.add(right.dtype)
        return left + right

    operation = cl.op(plus, commutative=True)
    case = CASES[0]
    wanted = rounded(sum(operand(case, r).astype(np.float64) for r in range(3)), "bfloat16")

    def run(comm: cl.Communicator) -> Any:
        x = operand(case, comm.rank)
        return comm.allreduce(x, op=operation, accumulate="float32").astype(np.float64).tolist()

    assert on_ranks(3, run) == [wanted.tolist()] * 3
    assert seen == {np.dtype(np.float32)}


def test_ranks_that_accumulate_otherwise_are_told_of_both_calls() -> None:
    def run(comm: cl.Communicator) -> None:
        x = np.ones(5, BFLOAT16)
        with pytest.raises(cl.MismatchError) as caught:
            comm.allreduce(x, accumulate=("float32", "float64")[comm.rank])
        assert "rank 0 calls allreduce of 5 bfloat16 (sum in float32, " in str(caught.value)
        assert "rank 1 calls allreduce of 5 bfloat16 (sum in float64, " in str(caught.value)

    on_ranks(2, run)
