# SPDX-License-Identifier: Apache-2.0
"""Algorithms that a program writes itself."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks


def star(b: cl.ScheduleBuilder) -> None:
    """Everybody sends to rank 0, which folds and tells.

    In rank order.
    """
    others = range(1, b.p)
    if b.p == 1:
        return
    if b.rank == 0:
        b.recv_reduce(0, [cl.SELF, *others], b.all)
        b.send(1, others, b.all)
    else:
        b.send(0, 0, b.all)
        b.recv(1, 0, b.all)


def to_all(b: cl.ScheduleBuilder) -> None:
    """Everybody sends its part to everybody."""
    others = [r for r in range(b.p) if r != b.rank]
    if others:
        b.send(0, others, b.rank)
    for other in others:
        b.recv(0, other, other)


def straight(b: cl.ScheduleBuilder) -> None:
    """The root sends to everybody."""
    if b.rank == b.root:
        others = [r for r in range(b.p) if r != b.rank]
        if others:
            b.send(0, others, slice(None))
    else:
        b.recv(0, b.root, [0, range(1, 3)])


@pytest.fixture(autouse=True)
def _defined() -> None:
    cl.algorithm("allreduce", name="star", chunks=2, paper="made here")(star)
    cl.algorithm("allgather", name="to_all")(to_all)
    cl.algorithm("broadcast", name="straight", chunks=lambda p: 3)(straight)


def test_it_runs_in_a_group_beside_a_call_in_flight() -> None:
    def run(comm: cl.Communicator) -> None:
        flying = [comm.allreduce(np.ones(300_000), async_op=True) for _ in range(5)]
        with comm.group():
            handle = comm.allreduce(np.ones(3), algorithm="star", async_op=True)
        assert flying[-1].wait()[0] + handle.wait()[0] == 6

    on_ranks(3, run)


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8])
def test_it_runs_like_a_built_in_one(p: int) -> None:
    def run(comm: cl.Communicator) -> None:
        for n in (0, 1, 7, 30_000):
            mine = np.arange(n, dtype=np.int64) + comm.rank
            wanted = p * np.arange(n) + p * (p - 1) // 2
            np.testing.assert_array_equal(comm.allreduce(mine, algorithm="star"), wanted)
            parts = comm.allgather(np.full(n, comm.rank), algorithm="to_all")
            np.testing.assert_array_equal(parts, np.repeat(np.arange(p), n))
            for root in range(p):
                x = np.full(n, comm.rank)
                comm.broadcast(x, root, algorithm="straight")
                np.testing.assert_array_equal(x, np.full(n, root))

    on_ranks(p, run)


def test_it_is_proved_listed_and_drawn() -> None:
    proofs = cl.verify("star", p=range(1, 9))
    assert all(proof.proved for proof in proofs)
    assert "star" in [a.name for a in cl.algorithms("allreduce")]
    entry = next(a for a in cl.algorithms("allreduce") if a.name == "star")
    assert (entry.paper, entry.summary) == (
        "made here",
        "Everybody sends to rank 0, which folds and tells.",
    )
    assert entry.fits(5)
    assert cl.schedule("star", 4).p == 4
    assert "<svg" in str(cl.draw("star", p=4))


def test_a_wrong_one_is_refused_with_what_is_wrong() -> None:
    @cl.algorithm("allreduce", name="forgetful", chunks=1)
    def forgetful(b: cl.ScheduleBuilder) -> None:
        star(b)
        if b.rank == b.p - 1 and b.p > 2:
            b.send(2, 0, 0)

    def run(comm: cl.Communicator) -> None:
        words = r"allreduce: algorithm forgetful, 3 ranks: rank 2, .*round 2.*not receive.*chunk 0"
        with pytest.raises(cl.InvalidArgumentError, match=words):
            comm.allreduce(np.ones(3), algorithm="forgetful")
        comm.barrier()

    on_ranks(3, run)
    proof = next(iter(cl.verify("forgetful", p=3)))
    assert not proof.proved


def test_a_message_that_nobody_sends_is_named_with_its_chunk() -> None:
    @cl.algorithm("allreduce", name="deaf", chunks=2)
    def deaf(b: cl.ScheduleBuilder) -> None:
        if b.rank == 1:
            b.recv(0, 0, 1)

    (proof, _) = cl.verify("deaf", p=2)
    assert re.search(r"rank 1, .*round 0, recv from 0.*: waits for chunk 1 .*rank 0", proof.message)


def own_first(b: cl.ScheduleBuilder) -> None:
    """Every rank folds what all hand in, its own value first."""
    others = [r for r in range(b.p) if r != b.rank]
    if others:
        b.send(0, others, b.all)
        b.recv_reduce(0, [cl.SELF, *others], b.all)


def test_other_bits_on_other_ranks_must_be_allowed() -> None:
    cl.algorithm("allreduce", name="own_first", chunks=1)(own_first)
    cl.algorithm("allreduce", name="own_first_allowed", chunks=1, same_bits=False)(own_first)

    def run(comm: cl.Communicator) -> None:
        x = np.full(3, comm.rank + 1.0)
        words = r"algorithm own_first, 4 ranks: the ranks fold .*different.*same_bits=False"
        with pytest.raises(cl.InvalidArgumentError, match=words):
            comm.allreduce(x, algorithm="own_first")
        assert comm.allreduce(x, algorithm="own_first_allowed").tolist() == [10.0] * 3

    on_ranks(4, run)
    assert not cl.verify("own_first", p=4)[0].same_tree_on_ranks


def test_too_many_chunks_are_the_users_mistake() -> None:
    cl.algorithm("allreduce", name="crumbs", chunks=100_000)(star)
    cl.algorithm("allreduce", name="dust", chunks=2**40)(star)

    def run(comm: cl.Communicator) -> None:
        words = "algorithm crumbs: chunks is 100000 for 2 ranks: give an integer from 1 to 16384"
        with pytest.raises(cl.InvalidArgumentError, match=words):
            comm.allreduce(np.ones(3), algorithm="crumbs")
        with pytest.raises(
            cl.InvalidArgumentError, match="algorithm dust: chunks is 1099511627776"
        ):
            comm.allreduce(np.ones(3), algorithm="dust")
        comm.barrier()

    on_ranks(2, run)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda b: b.send(2**40, 0, 0), "send: round is 1099511627776: give an integer"),
        (lambda b: b.send(0.5, 0, 0), "send: round is 0.5: give an integer"),
        (lambda b: b.send(0, 2**40, 0), "send: to is 1099511627776: give an integer"),
        (lambda b: b.send(0, [1.5], 0), "send: to is 1.5: give an integer"),
        (lambda b: b.send(0, 0, 2**40), "chunks is 1099511627776: give an integer"),
        (lambda b: b.recv(None, 0, 0), "recv: round is None: give an integer"),
        (lambda b: b.recv(0, "0", 0), "recv: source is '0': give an integer"),
        (lambda b: b.recv_reduce(0, 2.5, 0), "recv_reduce: order is 2.5: give an integer"),
        (lambda b: b.recv_reduce(0, [2**40], 0), "recv_reduce: order is 1099511627776: give an"),
        (lambda b: b.copy(2**40, "input", "output", 0), "copy: round is 1099511627776: give an"),
    ],
)
def test_what_is_no_number_is_told_with_rank_and_name(step: Any, words: str) -> None:
    cl.algorithm("allreduce", name="odd")(step)
    with pytest.raises(cl.InvalidArgumentError) as caught:
        cl.schedule("odd", 2)
    assert str(caught.value).startswith("allreduce: algorithm odd, 2 ranks: rank 0: ")
    assert words in str(caught.value)


def test_algorithms_that_differ_between_ranks_are_a_mismatch() -> None:
    def run(comm: cl.Communicator) -> None:
        @cl.algorithm("allreduce", name=f"differs{comm.rank}", chunks=1 + comm.rank)
        def differs(b: cl.ScheduleBuilder) -> None:
            star(b)

        with pytest.raises(cl.MismatchError):
            comm.allreduce(np.ones(3), algorithm=f"differs{comm.rank}")

    on_ranks(2, run)


def test_misuse_is_told() -> None:
    with pytest.raises(cl.InvalidArgumentError, match="built-in"):
        cl.algorithm("allreduce", name="ring")(star)
    with pytest.raises(cl.InvalidArgumentError, match="collective"):
        cl.algorithm("allreduec")
    named: Any = ["star"]
    with pytest.raises(cl.InvalidArgumentError, match=r"name is \['star'\]: give a word"):
        cl.algorithm("allreduce", name=named)(star)
    for wrong in ("", "a b", "a\nb", "a\0b", "\ud800", "a" * 3000, 10**5000):
        named = wrong
        with pytest.raises(cl.InvalidArgumentError, match="give a word of at most 100 letters"):
            cl.algorithm("allreduce", name=named)(star)
        with pytest.raises(cl.InvalidArgumentError, match="give a word of at most 100 letters"):
            cl.pack({(0, 1): 1.0, (1, 0): 1.0}, name=named)

    @cl.algorithm("allreduce", name="outside", chunks=2)
    def outside(b: cl.ScheduleBuilder) -> None:
        b.send(0, 0, 5)

    with pytest.raises(cl.InvalidArgumentError, match="chunks 5 to 5 are not among the 2"):
        cl.schedule("outside", 2)

    @cl.algorithm("allreduce", name="backwards", chunks=2)
    def backwards(b: cl.ScheduleBuilder) -> None:
        b.copy(1, "input", "output", 0)
        b.copy(0, "input", "nowhere", 0)

    with pytest.raises(cl.InvalidArgumentError, match="buffers are input, output, scratch"):
        cl.schedule("backwards", 2)
