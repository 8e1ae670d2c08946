# SPDX-License-Identifier: Apache-2.0
"""``reproducible=True``: the same bits whatever is chosen, bitwise those of the canonical tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from tests.canonical import FLOATS, canonical_fold, operands
from tests.python.ranks import on_ranks

REDUCING = ("allreduce", "reduce_scatter", "reduce", "scan", "exscan")
MODES = ("staged", "inline", "pull", "push")
N = 120  # splits into equal parts


def suitable(kind: str, p: int) -> list[str]:
    """Return the algorithms of a kind whose tree is the canonical one, for all roots."""
    fitting = [a.name for a in cl.algorithms(kind) if a.fits(p)]
    return [name for name in fitting if all(proof.canonical for proof in cl.verify(name, p, kind))]


def wanted(kind: str, rows: list[Any], op: str, rank: int) -> Any:
    """Return what a rank gets, None for nothing."""
    if kind == "exscan" and rank == 0:
        return None
    count = {"scan": rank + 1, "exscan": rank}.get(kind, len(rows))
    whole = canonical_fold(rows[:count], op)
    return whole.reshape(len(rows), -1)[rank] if kind == "reduce_scatter" else whole


def same(got: Any, expected: Any) -> bool:
    return bool(got.tobytes() == expected.tobytes())


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("kind", REDUCING)
def test_every_algorithm_and_mode_gives_the_bits_of_the_tree(kind: str, p: int) -> None:
    names = suitable(kind, p)
    assert names

    def run(comm: cl.Communicator) -> list[str]:
        wrong = []
        for dtype in FLOATS:
            n = N // p * p
            rows = [operands(dtype, r, n) for r in range(p)]
            for op in ("sum", "prod") if "scan" in kind else ("sum", "prod", "avg"):
                expected = wanted(kind, rows, op, comm.rank)
                for algorithm in (None, *names):
                    for mode in (None, *MODES) if op == "sum" else (None,):
                        x = rows[comm.rank].copy()
                        got = getattr(comm, kind)(
                            x, op=op, reproducible=True, algorithm=algorithm, mode=mode
                        )
                        if got is None or expected is None:
                            continue
                        if not same(got, expected):
                            wrong.append(f"{dtype} {op} {algorithm} {mode}")
        return wrong

    assert on_ranks(p, run) == [[]] * p


@pytest.mark.parametrize("p", [3, 4, 5, 7, 8])
def test_others_are_refused_and_give_other_bits(p: int) -> None:
    """So the bits tell the trees apart."""
    rows = [operands("float32", r, 1000) for r in range(p)]
    expected = canonical_fold(rows, "sum")
    others = [a.name for a in cl.algorithms("allreduce") if a.name not in suitable("allreduce", p)]
    assert "ring" in others

    def run(comm: cl.Communicator) -> None:
        for name in others:
            x = rows[comm.rank].copy()
            assert not same(comm.allreduce(x, algorithm=name), expected), name
            with pytest.raises(cl.UnsupportedError, match=f"{name} among {p} ranks does not sum"):
                comm.allreduce(x, reproducible=True, algorithm=name)
        assert same(comm.allreduce(rows[comm.rank].copy(), reproducible=True), expected)

    on_ranks(p, run)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
def test_splits_places_and_calls_do_not_tell(dtype: str) -> None:
    p, n = 5, 70_000
    rows = [operands(dtype, r, n) for r in range(p)]
    expected = canonical_fold(rows, "sum")

    def run(comm: cl.Communicator) -> None:
        mine = rows[comm.rank]
        out = np.empty_like(mine)
        assert same(comm.allreduce(mine, out, reproducible=True), expected)
        for cuts in ([1], [7, 8, 4099], [n // 3, n // 2]):
            parts = [comm.allreduce(x, reproducible=True) for x in np.split(mine.copy(), cuts)]
            assert same(np.concatenate(parts), expected)
        for root in range(p):
            result = comm.reduce(mine.copy(), root=root, reproducible=True)
            assert result is None or same(result, expected)
        lengths = [1, 0, n - 4, 2, 1]
        part = comm.reduce_scatterv(mine.copy(), lengths, reproducible=True)
        first = sum(lengths[: comm.rank])
        assert same(part, expected[first : first + len(part)])
        even = comm.reduce_scatter(mine.copy(), reproducible=True)
        assert same(comm.allgather(even), expected)
        scanned = comm.scan(mine.copy(), reproducible=True)
        assert comm.rank != p - 1 or same(scanned, expected)

    on_ranks(p, run)


def test_later_together_prepared_and_in_structures() -> None:
    p = 4
    rows = [operands("float16", r, N) for r in range(p)]
    expected = canonical_fold(rows, "avg")
    options: dict[str, Any] = {
        "op": "avg", "reproducible": True, "algorithm": "recursive_doubling",
    }  # fmt: skip

    def run(comm: cl.Communicator) -> None:
        mine = rows[comm.rank]
        pending = comm.allreduce(mine.copy(), async_op=True, **options)
        with comm.group():
            fused = [comm.allreduce(part, **options) for part in np.split(mine.copy(), 4)]
        tree = comm.allreduce({"a": mine.copy(), "b": np.ones(3, np.int8)}, reproducible=True)
        assert tree["b"].tolist() == [p] * 3
        prepared = comm.persistent.allreduce(mine.copy(), **options)
        results = [pending.wait(), np.concatenate(fused), prepared()]
        assert all(same(result, expected) for result in results)
        assert same(tree["a"], canonical_fold(rows, "sum"))

    on_ranks(p, run)


def test_calls_of_a_group_that_differ_in_it_share_no_message() -> None:
    def run(comm: cl.Communicator) -> int:
        before = comm.sequence
        with comm.group():
            for wish in (False, True, True, "any_p", "any_p"):
                comm.allreduce(np.ones(3, np.float32), reproducible=wish)
        return comm.sequence - before

    assert on_ranks(2, run) == [3, 3]


def test_what_is_associative_is_not_restricted() -> None:
    """Integers, min and max: any algorithm does, with the same bits."""

    def run(comm: cl.Communicator) -> None:
        x = np.array([np.nan, -0.0, comm.rank, np.inf], np.float32)
        zero = np.array([0.0 if comm.rank else -0.0], np.float32)
        for name in ("ring", "circulant", None):
            for wish in (True, "any_p"):
                options: dict[str, Any] = {"algorithm": name, "reproducible": wish}
                assert comm.allreduce(np.array([comm.rank]), **options).tolist() == [10]
                got = comm.allreduce(x.copy(), op="max", **options)
                assert np.isnan(got[0])
                assert np.signbit(got[1])
                assert got[2:].tolist() == [4, np.inf]
                assert np.signbit(comm.allreduce(zero.copy(), op="min", **options))[0]

    on_ranks(5, run)


def test_an_operation_of_the_program_gets_the_tree_in_rank_order() -> None:
    p = 8
    rows = [operands("float64", r, N) for r in range(p)]
    expected = canonical_fold(rows, "sum")

    plus = cl.op(np.add, commutative=True)

    def run(comm: cl.Communicator) -> None:
        for name in (None, "recursive_doubling", "binomial_tree"):
            x = rows[comm.rank].copy()
            got = comm.allreduce(x, op=plus, reproducible=True, algorithm=name)
            assert same(got, expected)
        with pytest.raises(cl.UnsupportedError, match="an operation of the program"):
            comm.allreduce(np.ones(3), op=plus, reproducible="any_p")

    on_ranks(p, run)


def test_own_schedules_are_taken_where_their_tree_proves_canonical() -> None:
    @cl.algorithm("allreduce", name="there_and_back")
    def left(b: cl.ScheduleBuilder) -> None:
        if b.rank:
            b.send(0, 0, b.all)
            b.recv(1, 0, b.all)
        else:
            b.recv_reduce(0, [cl.SELF, *range(1, b.p)], b.all)
            b.send(1, range(1, b.p), b.all)

    def run(comm: cl.Communicator) -> str:
        x = np.ones(3, np.float32)
        try:
            got = comm.allreduce(x, algorithm="there_and_back", reproducible=True)
        except cl.UnsupportedError as error:
            return str(error)
        return str(got.tolist())

    assert on_ranks(3, run) == ["[3.0, 3.0, 3.0]"] * 3
    assert all("canonical tree" in said for said in on_ranks(4, run))


@pytest.mark.parametrize("wish", ["yes", 1, None, "True"])
def test_words_that_are_none_are_refused(wish: Any) -> None:
    def run(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError, match='give True, "any_p"'):
            comm.allreduce(np.ones(3), reproducible=wish)

    on_ranks(1, run)


@given(
    p=st.sampled_from([2, 3, 4, 5, 8]),
    bits=st.lists(st.integers(0, 2**32 - 1), min_size=8, max_size=64),
    name=st.sampled_from(["direct_one_shot", "direct_two_shot", "binomial_tree", None]),
)
@settings(max_examples=40, deadline=None)
def test_any_bits(p: int, bits: list[int], name: str | None) -> None:
    """All numbers there are: subnormal ones, infinities; NaNs count as one number."""
    values = np.resize(np.array(bits, np.uint32), (p, len(bits))).view(np.float32)
    expected = canonical_fold(list(values), "sum")

    def run(comm: cl.Communicator) -> None:
        x = values[comm.rank].copy()
        got = comm.allreduce(x, reproducible=True, algorithm=name)
        number = ~np.isnan(expected)
        assert np.isnan(got[~number]).all()
        assert same(got[number], expected[number])

    on_ranks(p, run)
