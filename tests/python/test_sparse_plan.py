# SPDX-License-Identifier: Apache-2.0
"""Sums at indices that stay the same, of ranks with indices of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from tests.python.ranks import last, on_ranks, on_wired_ranks

DEGREES: dict[int, list[list[int] | None]] = {
    1: [None, [1]],
    2: [None],
    3: [None],
    4: [None, [2, 2]],
    6: [None, [3, 2], [2, 3]],
    8: [[4, 2], [2, 2, 2]],
}


def check(p: int, degrees: list[int] | None, seed: int, among: Any, *, same: bool) -> None:
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 400))
    gives = [rng.integers(0, length, int(rng.integers(0, 90))) for _ in range(p)]
    wants = gives if same else [rng.integers(0, length, int(rng.integers(0, 90))) for _ in range(p)]
    values = [[rng.integers(-9, 9, g.size).astype("float64") for g in gives] for _ in range(3)]
    dtype = str(rng.choice(["float64", "float32", "int16", "complex64"]))

    def body(comm: cl.Communicator) -> list[Any]:
        mine = comm.rank
        plan = comm.sparse_plan(
            gives[mine], None if same else wants[mine], length=length, degrees=degrees
        )
        assert (plan.given, plan.asked) == (gives[mine].size, wants[mine].size)
        return [plan.reduce(turn[mine].astype(dtype)) for turn in values]

    for rank, results in enumerate(among(p, body)):
        for turn, result in zip(values, results, strict=True):
            whole = np.zeros(length)
            for where, those in zip(gives, turn, strict=True):
                np.add.at(whole, where, those)
            assert result.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(result, whole[wants[rank]].astype(dtype))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), p=st.sampled_from(list(DEGREES)), same=st.booleans())
def test_sums_of_any_indices(seed: int, p: int, same: bool) -> None:
    for degrees in DEGREES[p]:
        check(p, degrees, seed, on_ranks, same=same)


@pytest.mark.parametrize(("p", "degrees"), [(2, None), (4, [2, 2]), (5, None)])
def test_sums_over_the_wire(p: int, degrees: list[int] | None) -> None:
    for seed in range(3):
        check(p, degrees, seed, on_wired_ranks, same=seed == 0)


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("degrees", [None, [3], [2, 2]])
def test_long_messages(among: Any, degrees: list[int] | None) -> None:
    """Longer than what a receiver that has not asked for them has room for."""
    n, p = 400_000, 4 if degrees == [2, 2] else 3

    def body(comm: cl.Communicator) -> None:
        everything = np.arange(n)
        mine = everything[comm.rank :: comm.size] if degrees is None else everything
        plan = comm.sparse_plan(mine, everything, length=n, degrees=degrees)
        for turn in range(3):
            sums = plan.reduce(np.full(mine.size, turn + 1.0, "float32"), timeout=30)
            wanted = (turn + 1) * (1 if degrees is None else p)
            np.testing.assert_array_equal(sums, np.full(n, wanted, "float32"))

    among(p, body)


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
def test_long_values_of_another_dtype(among: Any) -> None:
    def body(comm: cl.Communicator) -> None:
        plan = comm.sparse_plan(np.arange(300_000), length=300_000)
        dtype = "float64" if comm.rank else "float32"
        with pytest.raises(cl.MismatchError, match="float64"):
            plan.reduce(np.ones(300_000, dtype), timeout=30)

    among(2, body)


@pytest.mark.parametrize("ranks", [17, 37])
def test_many_ranks(ranks: int) -> None:
    """Primes have one layer only."""

    def body(comm: cl.Communicator) -> tuple[str, list[float]]:
        wants = [comm.rank, (comm.rank + 1) % comm.size, 0]
        plan = comm.sparse_plan([comm.rank], wants, length=comm.size + 1)
        return plan.way, plan.reduce(np.ones(1)).tolist()

    assert on_ranks(ranks, body) == [("kylix", [1.0, 1.0, 1.0])] * ranks


def test_lists_of_none() -> None:
    def body(comm: cl.Communicator) -> None:
        some = np.arange(4, dtype=np.int32)
        plan = comm.sparse_plan([], some, length=9)
        assert plan.way == "direct"
        assert plan.reduce(np.empty(0)).tolist() == [0] * 4
        assert comm.sparse_plan(some, [], length=9).reduce(np.ones(4)).size == 0
        assert comm.sparse_plan([], [], length=9).reduce(np.empty(0)).size == 0

    on_ranks(1, body)


@pytest.mark.parametrize(("p", "degrees"), [(1, None), (2, [2]), (4, [2, 2]), (17, None)])
def test_sums_that_nobody_gives(p: int, degrees: list[int] | None) -> None:
    gives = np.concatenate([[4 * r + 1, 4 * r + 2] for r in range(p)])

    def body(comm: cl.Communicator) -> None:
        plan = comm.sparse_plan(gives, gives - 1, length=4 * p, degrees=degrees)
        np.testing.assert_array_equal(plan.reduce(np.ones(2 * p)), [0, p] * p)

    on_ranks(p, body)


def test_values_alone_travel() -> None:
    def body(comm: cl.Communicator) -> tuple[int, int]:
        where = np.arange(0, 100_000, 10, dtype=np.int32)
        comm.allreduce(
            cl.Sparse(where, np.ones(where.size, "float32"), 100_000),
            algorithm="ssar_split_allgather",
        )
        pairs = last(comm).nbytes
        plan = comm.sparse_plan(where, length=100_000)
        plan.reduce(np.ones(where.size, "float32"))
        return plan.sent[0], pairs

    for planned, pairs in on_ranks(4, body):
        assert planned <= 0.52 * pairs


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_few_values_take_half_of_pairs_too(ranks: int, among: Any) -> None:
    """Between machines, where rounds are dear, both go in one: the second time such pairs come."""
    where = np.random.default_rng(ranks).choice(100_000, 1000, replace=False).astype(np.int32)

    def body(comm: cl.Communicator) -> tuple[int, int, int]:
        x = cl.Sparse(where, np.ones(where.size, "float32"), 100_000)
        pairs, coded = (
            [(comm.allreduce(x, coding=coding), last(comm).nbytes)[1] for _ in range(2)][1]
            for coding in ("raw", "coded")
        )
        plan = comm.sparse_plan(where, length=100_000)
        plan.reduce(np.ones(where.size, "float32"))
        return plan.sent[0], pairs, coded

    planned, pairs, coded = np.array(among(ranks, body)).max(axis=0)
    assert planned <= 0.52 * pairs
    assert planned <= 0.9 * coded


@pytest.mark.parametrize("skewed", [False, True])
def test_bytes_against_coded_pairs(skewed: bool) -> None:
    """All that an allreduce gives, from the same indices, by at most 0.9 of its coded bytes."""
    length, n, ranks = 1_000_000, 10_000, 4
    rng = np.random.default_rng(2)
    places = [rng.random(4 * n) ** (6 if skewed else 1) * length for _ in range(ranks)]
    where = [rng.permutation(np.unique(x.astype(np.int64)))[:n] for x in places]
    union = np.unique(np.concatenate(where))

    def body(comm: cl.Communicator) -> tuple[int, int]:
        mine = where[comm.rank]
        values = np.ones(mine.size, "float32")
        comm.allreduce(cl.Sparse(mine, values, length))
        pairs = last(comm).nbytes
        plan = comm.sparse_plan(mine, union, length=length)
        plan.reduce(values)
        return plan.sent[0], pairs

    sent = on_ranks(ranks, body)
    assert max(planned for planned, _ in sent) <= 0.9 * max(pairs for _, pairs in sent)


def test_ways() -> None:
    def ways(gives: Any, wants: Any, degrees: list[int] | None = None) -> set[str]:
        def body(comm: cl.Communicator) -> str:
            mine = np.asarray(gives(comm.rank))
            plan = comm.sparse_plan(mine, wants(comm.rank), length=90_000, degrees=degrees)
            result = plan.reduce(np.ones(mine.size))
            assert last(comm).algorithm == plan.way
            everywhere = np.concatenate([gives(r) for r in range(comm.size)])
            counts = np.bincount(everywhere, minlength=90_000)
            np.testing.assert_array_equal(result, counts[wants(comm.rank)])
            return plan.way

        return set(on_ranks(4, body))

    def all_of(_: int) -> Any:
        return np.arange(0, 90_000, 3)

    assert ways(all_of, all_of) == {"owners"}
    assert ways(lambda r: np.arange(r, 90_000, 4), all_of) == {"direct"}  # each gives its own
    assert ways(lambda _: np.arange(5), lambda _: np.arange(9)) == {"direct"}  # a round saved
    assert ways(all_of, all_of, [4]) == {"kylix"}
    assert ways(lambda _: np.arange(0), all_of) == {"direct"}


def test_the_same_bits_whichever_way() -> None:
    rng = np.random.default_rng(8)
    where = [rng.choice(40_000, 30_000, replace=False) for _ in range(3)]
    values = [rng.normal(size=30_000).astype("float32") for _ in range(3)]
    asked = np.arange(40_000)

    def body(comm: cl.Communicator) -> list[tuple[str, bytes]]:
        mine, got = comm.rank, []
        for degrees in (None, [3]):
            plan = comm.sparse_plan(where[mine], asked, length=40_000, degrees=degrees)
            got.append((plan.way, plan.reduce(values[mine]).tobytes()))
        return got

    found = [one for rank in on_ranks(3, body) for one in rank]
    assert {way for way, _ in found} == {"owners", "kylix"}
    assert len({bits for _, bits in found}) == 1


def test_average() -> None:
    def body(comm: cl.Communicator) -> Any:
        plan = comm.sparse_plan(np.array([comm.rank, 7]), np.array([7, 0, 5]), length=8)
        out = np.empty(3, "float32")
        assert plan.reduce(np.array([2, 4], "float32"), out, op="avg") is out
        return out

    for result in on_ranks(4, body):
        np.testing.assert_array_equal(result, [4.0, 0.5, 0.0])


def test_bad_plans() -> None:
    def body(comm: cl.Communicator) -> None:
        bad = cl.InvalidArgumentError
        with pytest.raises(bad, match=r"index 9 \(at 1\) is none of a vector of 9 elements"):
            comm.sparse_plan(np.array([0, 9]), length=9)
        with pytest.raises(bad, match="-1"):
            comm.sparse_plan(np.array([0, -1]), length=9)
        with pytest.raises(bad, match=f"index {2**64 - 1} "):
            comm.sparse_plan(np.array([0, 2**64 - 1], np.uint64), length=9)
        with pytest.raises(bad, match=f"index {2**63} .at 0"):
            comm.sparse_plan(np.arange(3, dtype=np.uint64), [2**63], length=9)
        with pytest.raises(bad, match="the product of the degrees is not 2"):
            comm.sparse_plan(np.array([0]), length=9, degrees=[3])
        with pytest.raises(bad, match="no integers"):
            comm.sparse_plan(np.array([0.5]), length=9)
        with pytest.raises(bad, match="one dimension"):
            comm.sparse_plan(np.zeros((2, 2), int), length=9)
        plan = comm.sparse_plan(np.array([1, 2]), length=9)
        with pytest.raises(bad, match="3 elements, but the plan was made for 2"):
            plan.reduce(np.zeros(3))
        with pytest.raises(bad, match=r"^plan\.reduce: op avg of int64 is not there"):
            plan.reduce(np.zeros(2, int), op="avg")
        with pytest.raises(bad, match="out has 3 elements of float64: it must have 2 of float64"):
            plan.reduce(np.zeros(2), np.zeros(3))
        assert plan.reduce(np.ones(2)).tolist() == [2, 2]

    on_ranks(2, body)


def test_ranks_that_differ_are_told() -> None:
    def body(comm: cl.Communicator) -> str:
        with pytest.raises(cl.MismatchError) as caught:
            comm.sparse_plan(np.array([0]), length=8 + comm.rank)
        return str(caught.value)

    for text in on_ranks(2, body):
        assert "8 elements" in text
        assert "9 elements" in text


@pytest.mark.parametrize("degrees", [None, [2, 2]])
def test_skewed_indices_are_shared_out(degrees: list[int] | None) -> None:
    """All indices lie in a sixteenth of the vector: no rank has more to do than the others."""
    where = [np.random.default_rng(r).choice(5000, 2000, replace=False) for r in range(4)]

    def body(comm: cl.Communicator) -> int:
        plan = comm.sparse_plan(where[comm.rank], length=80_000, degrees=degrees)
        plan.reduce(np.ones(2000, "float32"))
        return plan.sent[0]

    sent = on_ranks(4, body)
    assert max(sent) < 1.25 * sum(sent) / 4


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
def test_ranks_that_use_other_plans_are_told(among: Any) -> None:
    def body(comm: cl.Communicator) -> None:
        plans = [comm.sparse_plan(np.arange(n) + comm.rank, length=50) for n in (2, 2, 9)]
        for theirs in (1, 2):
            plan = plans[theirs if comm.rank else 0]
            with pytest.raises(cl.MismatchError, match="plan of call"):
                plan.reduce(np.ones(plan.given))

    among(2, body)


def test_lengths_and_degrees_that_are_none() -> None:
    def body(comm: cl.Communicator) -> None:
        for length in (5.0, "a", -1, 2**64, True):
            with pytest.raises(cl.InvalidArgumentError, match="elements"):
                comm.sparse_plan(np.arange(3), length=length)  # type: ignore[arg-type]
        for degrees in (["a"], 4, []):
            with pytest.raises(cl.InvalidArgumentError, match="degrees"):
                comm.sparse_plan(np.arange(3), length=9, degrees=degrees)  # type: ignore[arg-type]
        assert comm.sparse_plan([], length=9).reduce(np.empty(0)).size == 0

    on_ranks(1, body)


@pytest.mark.parametrize(("among", "degrees"), [(on_ranks, [2, 2]), (on_wired_ranks, None)])
def test_the_last_call(among: Any, degrees: list[int] | None) -> None:
    def body(comm: cl.Communicator) -> None:
        plan = comm.sparse_plan(np.array([1, 2 + comm.rank]), length=9, degrees=degrees)
        plan.reduce(np.ones(2))
        found = last(comm)
        way = "kylix" if degrees else "direct"
        assert (found.kind, found.algorithm, found.mode) == ("plan.reduce", way, "messages")
        assert (found.nbytes, found.messages) == plan.sent
        assert degrees or plan.sent == (3 * 8, 3)
        assert found.rounds == (4 if degrees else 1)
        assert found.sequence == comm.sequence
        assert 0 < found.seconds < 20
        assert str(found).startswith(f"plan.reduce of {plan.sent[0]} bytes by {way} (messages) in ")
        comm.barrier()
        assert last(comm).kind == "barrier"
        plan.reduce(np.ones(2), async_op=True).wait()
        assert last(comm).kind == "plan.reduce"

    among(4, body)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (cl.Sparse(np.array([1]), np.ones(1), 9), "{} is a sparse array: pass its indices"),
        ([2, 9], r"{} \(\w+\): index 9 \(at 1\) is none of a vector of 9 elements"),
        ([-1], r"{} \(\w+\): index -1 \(at 0\) is none"),
        ([0.5], "{}: elements of dtype float64 are no integers"),
        (np.array([True]), "{}: elements of dtype bool are no integers"),
        ([None], "{}: elements of dtype object are no integers"),
        ([[1, 2]], "{} must have one dimension, not 2"),
        ([[1], [2, 3]], "{} is no list of indices"),
        (np.array([3], np.int16), "int64, in_indices int16|int16, in_indices int64"),
    ],
)
def test_which_list_is_wrong(wrong: Any, said: str) -> None:
    """Whichever it is; nothing was sent, so the communicator works on."""
    with cl.local(1)[0] as comm:
        for name in ("out_indices", "in_indices"):
            lists = {"out_indices": [1], "in_indices": [1]} | {name: wrong}
            match = "^sparse_plan: .*" + said.format(name)
            with pytest.raises(cl.InvalidArgumentError, match=match):
                comm.sparse_plan(length=9, **lists)
        assert comm.sparse_plan([1], length=9).reduce(np.ones(1))[0] == 1
