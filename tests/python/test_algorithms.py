# SPDX-License-Identifier: Apache-2.0
"""Algorithms, proofs and schedules as plain values."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

import collectives as cl
from collectives._ffi import check, ffi, lib, text
from collectives.catalogue import PLANS, ROOTED, decode
from collectives.lowering import lowering
from collectives.names import KINDS, algorithm_index

TABLE = cl.algorithms()


def ident(algorithm: cl.Algorithm) -> str:
    return f"{algorithm.kind}-{algorithm.name}"


def fitting(*ranks: int) -> list[Any]:
    """Every algorithm with each number of ranks that it is defined for."""
    return [pytest.param(a, p, id=f"{ident(a)}-{p}") for a in TABLE for p in ranks if a.fits(p)]


def test_every_kind_has_an_algorithm() -> None:
    assert {a.kind for a in TABLE} == set(KINDS)
    for kind in KINDS:
        assert cl.algorithms(kind) == [a for a in TABLE if a.kind == kind]


@pytest.mark.parametrize("algorithm", TABLE, ids=ident)
def test_every_algorithm_says_what_it_is(algorithm: cl.Algorithm) -> None:
    assert algorithm.paper
    assert algorithm.summary.endswith(".")
    assert algorithm.fits(1) or algorithm.restriction
    assert not algorithm.fits(0)
    for claim in ("rounds", "bytes", "reductions"):
        if getattr(algorithm, claim):
            assert algorithm.formula(claim, 4) >= 0


def test_formulas_have_values() -> None:
    ring = next(a for a in TABLE if ident(a) == "allreduce-ring")
    assert [ring.formula("rounds", p) for p in (1, 2, 5)] == [0, 2, 8]
    assert math.isclose(ring.formula("bytes", 5), 1.6)


@pytest.mark.parametrize("algorithm", TABLE, ids=ident)
def test_every_algorithm_is_proved(algorithm: cl.Algorithm) -> None:
    proofs = cl.verify(algorithm.name, range(1, 10), algorithm.kind)
    assert [proof.message for proof in proofs if not proof.proved] == []
    ranks = [p for p in range(1, 10) if algorithm.fits(p)]
    roots = {p: p if algorithm.kind in ROOTED else 1 for p in ranks}
    assert len(proofs) == 2 * sum(roots.values())
    for proof in proofs:
        assert (proof.mode, proof.depth, proof.ops) == (None, 0, 0)
        if algorithm.bytes:
            assert proof.bytes == pytest.approx(algorithm.formula("bytes", proof.p))


@pytest.mark.parametrize("algorithm", TABLE, ids=ident)
def test_the_plans_are_proved_too(algorithm: cl.Algorithm) -> None:
    p = 5 if algorithm.fits(5) else 4
    proofs = cl.verify(algorithm.name, p, algorithm.kind, plans=True)
    assert [proof.message for proof in proofs if not proof.proved] == []
    assert {p.mode for p in proofs} == {None, *(mode for mode, *_ in PLANS)}
    assert {p.stores for p in proofs} == {None, "ordinary", "non_temporal"}
    assert all(proof.ops > 0 for proof in proofs if proof.mode)


@pytest.mark.parametrize(("algorithm", "p"), fitting(1, 2, 3, 8))
def test_schedules_match_their_messages(algorithm: cl.Algorithm, p: int) -> None:
    shown = cl.schedule(algorithm.name, p, algorithm.kind)
    assert (shown.kind, shown.name, shown.p, len(shown.ranks)) == (
        algorithm.kind,
        algorithm.name,
        p,
        p,
    )
    sent = [
        (step.round, rank, peer)
        for rank, steps in enumerate(shown.ranks)
        for step in steps
        if step.op == "send"
        for peer in step.peers
    ]
    received = [
        (step.round, peer, rank)
        for rank, steps in enumerate(shown.ranks)
        for step in steps
        if step.op.startswith("recv")
        for peer in step.peers
        if peer >= 0
    ]
    assert sorted(sent) == sorted(received)
    assert shown.rounds == len({label for label, _, _ in sent})
    if algorithm.rounds:
        assert shown.rounds == algorithm.formula("rounds", p)


def test_schedules_are_plain_values() -> None:
    ring = cl.schedule("ring", 2)
    assert ring == cl.schedule("ring", 2)
    assert dataclasses.asdict(ring)["ranks"][0][0]["op"] in ("send", "recv_reduce", "copy")
    with pytest.raises(dataclasses.FrozenInstanceError):
        ring.p = 3  # type: ignore[misc]


def test_decode_reads_the_documented_encoding() -> None:
    step = [0, 0, 0, 1, 1, 1, 0, 0, 2, 0]  # send, round 0, left, peers (1), source input[0:2]
    fold = [2, 0, 1, 2, -1, 0, 1, 0, 0, 2, 1, 1, 0, 2]  # recv_reduce, balanced, self + rank 0
    shown = decode([0x5343, 1, 0, 2, 0, 2, 1, *step, 1, *fold], "mine")
    assert shown.ranks == (
        (cl.Step("send", 0, "left", (1,), (cl.Segment("input", 0, 2),), ()),),
        (
            cl.Step(
                "recv_reduce",
                0,
                "balanced",
                (-1, 0),
                (cl.Segment("input", 0, 2),),
                (cl.Segment("output", 0, 2),),
            ),
        ),
    )
    assert (shown.kind, shown.p, shown.chunks, shown.rounds) == ("allreduce", 2, 2, 1)


def test_a_local_fold_is_a_step() -> None:
    shown = cl.schedule("doubling_123", 4, "exscan")
    assert shown.rounds == 2
    local = [step for steps in shown.ranks for step in steps if step.op == "reduce"]
    output, scratch = (cl.Segment(buffer, 0, 1) for buffer in ("output", "scratch"))
    assert local == [cl.Step("reduce", 1, "left", (), (output,), (scratch,))]


@pytest.mark.parametrize(("algorithm", "p"), fitting(2, 5))
def test_what_is_encoded_can_be_read_back_and_proved(algorithm: cl.Algorithm, p: int) -> None:
    index = algorithm_index(algorithm.kind, algorithm.name)
    data, length = ffi.new("int32_t **"), ffi.new("size_t *")
    check(lib.coll_schedule(index, p, 0, data, length))
    try:
        proof = ffi.new("coll_proof *")
        checks = lib.COLL_CHECK_ALL
        check(lib.coll_prove_encoded(data[0], length[0], 0, index, checks, proof))
    finally:
        lib.coll_free(data[0])
    assert proof.proved, text(proof.message)


def test_decode_refuses_other_numbers() -> None:
    with pytest.raises(cl.InternalError, match="not an encoded schedule"):
        decode([1, 2, 3, 4, 5, 6], "mine")


def test_one_p_that_does_not_fit_is_an_error_and_of_several_is_left_out() -> None:
    with pytest.raises(cl.UnsupportedError, match="allreduce ring is not defined for 0 ranks"):
        cl.verify("ring", 0)
    with pytest.raises(cl.UnsupportedError, match="recursive_doubling is not defined for 3 ranks"):
        cl.verify("recursive_doubling", 3, "allgather")
    assert {proof.p for proof in cl.verify("recursive_doubling", (2, 3, 4), "allgather")} == {2, 4}


@pytest.mark.parametrize("p", [[0], [2, -3], range(3)])
def test_of_several_none_is_below_one(p: Any) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=r"verify: p has .*: give numbers of 1 or"):
        cl.verify("ring", p)


@pytest.mark.parametrize(("kind", "name"), [("broadcast", "binomial"), ("scatter", "linear")])
def test_a_root_that_is_no_rank_is_refused(kind: str, name: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match="root"):
        cl.schedule(name, 4, kind, root=4)


def test_rooted_kinds_are_proved_for_every_root() -> None:
    assert {proof.root for proof in cl.verify("linear", 5, "gather")} == set(range(5))
    assert {proof.root for proof in cl.verify("pairwise", 5, "alltoall")} == {0}


def test_schedules_that_would_fill_the_memory_are_refused() -> None:
    with pytest.raises(cl.UnsupportedError, match="allreduce ring for 900 ranks has too many"):
        cl.schedule("ring", 900)
    for ask in (cl.verify, cl.draw):  # each makes them as schedule() does
        with pytest.raises(
            cl.UnsupportedError, match="allreduce ring for 50000 ranks has too many"
        ):
            ask("ring", 50000)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("size", 8, "coll_lowering.size is too small"),
        ("mode", 9, "there is no mode number 9"),
        ("stores", 2, "there is no kind of stores number 2"),
        ("depth", 0, "lowering needs depth >= 1 and lag >= 0"),
    ],
)
def test_lowerings_that_there_are_not(field: str, value: int, said: str) -> None:
    how = lowering("staged", 4, 1, "non_temporal")
    setattr(how, field, value)
    with pytest.raises(cl.InvalidArgumentError, match=said):
        check(lib.coll_prove_plan(0, 2, 0, 0, how, ffi.new("coll_proof *")))
