# SPDX-License-Identifier: Apache-2.0
"""Algorithms that a program writes itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.names import OWN
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
def _defined() -> Iterator[None]:
    """Other tests enumerate all algorithms: these are there for the tests of this file only."""
    cl.algorithm("allreduce", name="star", chunks=2, paper="made here")(star)
    cl.algorithm("allgather", name="to_all")(to_all)
    cl.algorithm("broadcast", name="straight", chunks=lambda p: 3)(straight)
    yield
    OWN.clear()


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
        with pytest.raises(cl.InvalidArgumentError, match=r"rank 2, .*round 2.*does not receive"):
            comm.allreduce(np.ones(3), algorithm="forgetful")
        comm.barrier()

    on_ranks(3, run)
    proof = next(iter(cl.verify("forgetful", p=3)))
    assert not proof.proved


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
