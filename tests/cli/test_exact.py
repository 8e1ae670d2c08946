# SPDX-License-Identifier: Apache-2.0
"""Inputs with one right answer: in any order, and no other answer passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives.exact import (
    DTYPES,
    KINDS,
    OPS,
    SHIFTS,
    Buffers,
    Workload,
    contributions,
    different,
    dtype_of,
    reduced,
)

LOADS = st.builds(
    Workload,
    kind=st.sampled_from([kind for kind in KINDS if kind != "barrier"]),
    nbytes=st.integers(0, 3000),
    dtype=st.sampled_from([d for d in DTYPES if "int" not in d]),
    op=st.sampled_from(OPS),
) | st.builds(
    Workload,
    kind=st.sampled_from([kind for kind in KINDS if kind != "barrier"]),
    nbytes=st.integers(0, 3000),
    dtype=st.sampled_from([d for d in DTYPES if "int" in d]),
    op=st.sampled_from([op for op in OPS if op != "avg"]),
)


def deliver(load: Workload, ranks: list[Buffers]) -> None:
    """Do the collective by hand, as its definition says."""
    x = np.stack([rank.x for rank in ranks])
    for rank in ranks:
        if load.kind == "broadcast":
            rank.out[...] = x[load.root]
        elif load.kind == "allgather":
            rank.out[...] = x.reshape(-1)
        elif load.kind == "reduce_scatter":
            rank.out[...] = reduced(x, load.op).reshape(len(ranks), -1)[rank.rank]
        elif load.kind == "allreduce" or rank.rank == load.root:
            rank.out[...] = reduced(x, load.op)


@given(LOADS, st.integers(1, 9), st.integers(0, 40))
@settings(deadline=None, max_examples=60)
def test_the_definition_passes_and_the_last_turn_does_not(
    load: Workload, p: int, turn: int
) -> None:
    ranks = [Buffers(load, rank, p) for rank in range(p)]
    for rank in ranks:
        rank.fill(turn)
    deliver(load, ranks)
    assert [rank.wrong(turn) for rank in ranks] == [0] * p
    long = load.count(p) > 200 and load.dtype != "uint8"
    if long and load.op in ("sum", "avg"):  # few values of min, max, prod differ from turn to turn
        assert ranks[load.root].wrong(turn + 1) > 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max"])
@pytest.mark.parametrize("p", [2, 5, 8, 64])
def test_any_order_of_folding_gives_the_same_bits(dtype: str, op: str, p: int) -> None:
    values = contributions(Workload("allreduce", 8, dtype, op), p)
    fold: dict[str, Any] = {
        "sum": np.add,
        "prod": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
    }
    right = reduced(values, op)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(p)
        total: npt.NDArray[Any] = values[order[0]]
        with np.errstate(over="ignore"):
            for rank in order[1:]:
                total = fold[op](total, values[rank]).astype(values.dtype)
        assert different(total, right) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_wrong_bit_is_counted(dtype: str) -> None:
    buffers = Buffers(Workload("allreduce", 4096, dtype), 0, 1)
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
        ("broadcast", 4, 25, 100),
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
        ({"nbytes": -1}, "cannot be negative"),
    ],
)
def test_workloads_that_make_no_sense_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Workload(**dict[str, Any](kind="allreduce", nbytes=8) | wrong)


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="dtype 'float8' is unknown"):
        dtype_of("float8")
