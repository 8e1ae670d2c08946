# SPDX-License-Identifier: Apache-2.0
"""Inputs with one right answer: in any order, and no other answer passes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives.exact import (
    DTYPES,
    KINDS,
    REDUCING,
    SCANS,
    SHIFTS,
    Buffers,
    Workload,
    contributions,
    dtype_of,
    ops_of,
)
from collectives.operands import different, inaccurate, reduced

DATA = [kind for kind in KINDS if kind != "barrier"]


@st.composite
def loads(draw: st.DrawFn) -> Workload:
    """Any kind that has data, with any dtype and any operation on it."""
    kind = draw(st.sampled_from(DATA))
    dtype = draw(st.sampled_from(DTYPES))
    ops = [op for op in ops_of(dtype) if op != "avg" or kind not in SCANS]
    op = draw(st.sampled_from(ops)) if kind in REDUCING else "sum"
    return Workload(kind, draw(st.integers(0, 3000)), dtype, op, draw(st.integers(0, 8)))


def deliver(load: Workload, ranks: list[Buffers]) -> None:
    """Do the collective by hand, as its definition says."""
    p, x = len(ranks), [rank.x.copy() for rank in ranks]
    for me, rank in enumerate(ranks):
        if load.kind == "broadcast":
            rank.out[...] = x[load.root]
        elif load.kind == "allgather" or (load.kind == "gather" and me == load.root):
            rank.out[...] = np.concatenate(x)
        elif load.kind == "scatter":
            rank.out[...] = x[load.root].reshape(p, -1)[me]
        elif load.kind == "alltoall":
            rank.out[...] = np.concatenate([sent.reshape(p, -1)[me] for sent in x])
        elif load.kind == "reduce_scatter":
            rank.out[...] = reduced(np.stack(x), load.op).reshape(p, -1)[me]
        elif load.kind == "scan":
            rank.out[...] = reduced(np.stack(x[: me + 1]), load.op)
        elif load.kind == "exscan" and me > 0:
            rank.out[...] = reduced(np.stack(x[:me]), load.op)
        elif load.kind == "allreduce" or (load.kind == "reduce" and me == load.root):
            rank.out[...] = reduced(np.stack(x), load.op)


@given(loads(), st.integers(1, 9), st.integers(0, 40))
@settings(deadline=None, max_examples=60)
def test_the_definition_passes_and_the_last_turn_does_not(
    load: Workload, p: int, turn: int
) -> None:
    load = dataclasses.replace(load, root=load.root % p)
    ranks = [Buffers(load, rank, p) for rank in range(p)]
    for rank in ranks:
        rank.fill(turn)
    deliver(load, ranks)
    assert [rank.wrong(turn) for rank in ranks] == [0] * p
    long = load.count(p) > 200 and load.dtype != "uint8"
    if long and load.op in ("sum", "avg"):  # few values of min, max, prod differ from turn to turn
        assert ranks[load.root].wrong(turn + 1) > 0


@pytest.mark.parametrize(("kind", "spared"), [("reduce", 2), ("exscan", 0)])
def test_a_rank_that_is_promised_nothing_keeps_what_it_has(kind: str, spared: int) -> None:
    ranks = [Buffers(Workload(kind, 4096), rank, 3) for rank in range(3)]
    for rank in ranks:
        rank.fill(2)
    deliver(ranks[0].workload, ranks)
    assert [rank.wrong(2) for rank in ranks] == [0, 0, 0]
    ranks[spared].out[3] += 1
    assert ranks[spared].wrong(2) == 1


def test_blocks_that_change_places_are_seen() -> None:
    ranks = [Buffers(Workload("alltoall", 4096), rank, 4) for rank in range(4)]
    for rank in ranks:
        rank.fill(0)
    deliver(ranks[0].workload, ranks)
    parts = ranks[1].out.reshape(4, -1)
    parts[[0, 3]] = parts[[3, 0]]
    assert ranks[1].wrong(0) > 400


FOLDS = [(dtype, op) for dtype in DTYPES for op in ops_of(dtype)]
EXACT = [fold for fold in FOLDS if fold[1] != "avg"]


@pytest.mark.parametrize(("dtype", "op"), EXACT)
@pytest.mark.parametrize("p", [2, 8, 64])
def test_any_order_of_folding_gives_the_same_bits(dtype: str, op: str, p: int) -> None:
    values = contributions(Workload("allreduce", 8, dtype, op), p)
    right = reduced(values, op)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(p)
        total: npt.NDArray[Any] = values[order[0]]
        for rank in order[1:]:
            total = reduced(np.stack([total, values[rank]]), op)
        assert different(total, right) == 0


@pytest.mark.parametrize(("dtype", "op"), FOLDS)
@pytest.mark.parametrize("p", [2, 9])
def test_every_contribution_counts(dtype: str, op: str, p: int) -> None:
    values = contributions(Workload("allreduce", 8, dtype, op), p)
    right = reduced(values, op)
    wrong = inaccurate if op == "avg" else different
    for lost in range(p):
        kept = np.delete(values, lost, axis=0)
        twice = np.concatenate([kept, kept[:1]])  # so that an average is of p operands
        assert wrong(reduced(twice if op == "avg" else kept, op), right) > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_wrong_bit_is_counted(dtype: str) -> None:
    buffers = Buffers(Workload("allreduce", 4096, dtype, ops_of(dtype)[0]), 0, 1)
    buffers.fill(3)
    assert buffers.wrong(3) == 0
    buffers.out.view(np.uint8)[40] ^= 1
    assert buffers.wrong(3) == 1


def test_a_lost_contribution_is_seen() -> None:
    load, p = Workload("allreduce", 4096), 4
    ranks = [Buffers(load, rank, p) for rank in range(p)]
    for rank in ranks:
        rank.fill(0)
    ranks[0].out[...] = ranks[0].x + ranks[1].x + ranks[2].x
    assert ranks[0].wrong(0) > 900


def test_turns_repeat_after_a_while() -> None:
    buffers = Buffers(Workload("allreduce", 4096), 0, 1)
    buffers.fill(1)
    assert buffers.wrong(1 + SHIFTS) == 0
    assert buffers.wrong(2) > 900


@pytest.mark.parametrize(
    ("kind", "ranks", "count", "size"),
    [
        ("allreduce", 4, 25, 100),
        ("reduce_scatter", 4, 6, 96),
        ("allgather", 4, 6, 96),
        ("gather", 4, 6, 96),
        ("scatter", 4, 6, 96),
        ("alltoall", 4, 6, 96),
        ("broadcast", 4, 25, 100),
        ("scan", 4, 25, 100),
        ("barrier", 4, 0, 0),
    ],
)
def test_counts_are_those_of_nccl_tests(kind: str, ranks: int, count: int, size: int) -> None:
    load = Workload(kind, 100)
    assert (load.count(ranks), load.size(ranks)) == (count, size)


def test_a_tiny_size_still_gives_every_rank_one_element() -> None:
    assert Workload("allgather", 1).size(8) == 32


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "gossip"}, "collective 'gossip' is unknown"),
        ({"op": "xor"}, "op 'xor' is unknown"),
        ({"op": "avg", "dtype": "int32"}, "avg of int32 is not defined"),
        ({"op": "avg", "kind": "exscan"}, "avg of exscan is not defined"),
        ({"nbytes": -1}, "cannot be negative"),
    ],
)
def test_workloads_that_make_no_sense_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Workload(**dict[str, Any](kind="allreduce", nbytes=8) | wrong)


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="dtype 'float8' is unknown"):
        dtype_of("float8")
