# SPDX-License-Identifier: Apache-2.0
"""force(): what runs within its blocks, each of which takes back its own wish, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest

import collectives as cl
from collectives.tuning import installed
from tests.python.ranks import last, on_ranks


def runs(comm: cl.Communicator, kind: str = "allreduce") -> str:
    """Return what a call runs, or "" where nothing is wished for."""
    shown = comm.explain(kind)
    return shown.choice.algorithm if shown.source == "wished for" else ""


def test_what_is_forced_runs_within_the_block() -> None:
    def work(comm: cl.Communicator) -> None:
        with comm.force(allreduce="chain"):
            for count in (3, 3000, 300_000):
                shown = comm.explain("allreduce", count * 8)
                assert (shown.choice.algorithm, shown.source) == ("chain", "wished for")
                assert (comm.allreduce(np.ones(count)) == 3).all()
            with comm.force(broadcast="linear"):
                assert comm.explain("broadcast").choice.algorithm == "linear"
                assert comm.explain("allreduce").choice.algorithm == "chain"
            assert comm.explain("broadcast").source == "rule"
        assert comm.explain("allreduce").source == "rule"

    def refused(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError, match="did you mean"):
            comm.force(allreduce="rinf").__enter__()
        with pytest.raises(cl.InvalidArgumentError, match="collective"):
            comm.force(allsum="ring").__enter__()
        with pytest.raises(cl.UnsupportedError, match="not defined for 3 ranks"):
            comm.force(allgather="recursive_doubling").__enter__()
        assert comm.explain("allgather").source == "rule"

    on_ranks(3, work)
    on_ranks(3, refused)


def test_blocks_may_be_left_in_another_order_than_they_were_entered() -> None:
    def work(comm: cl.Communicator) -> None:
        def forced() -> Iterator[None]:
            with comm.force(allreduce="ring", broadcast="binomial"):
                yield

        outer = forced()
        next(outer)
        with comm.force(allreduce="chain"):
            assert (runs(comm), runs(comm, "broadcast")) == ("chain", "binomial")
            outer.close()  # type: ignore[attr-defined]
            assert (runs(comm), runs(comm, "broadcast")) == ("chain", "")
            comm.allreduce(np.ones(3))
            assert last(comm).algorithm == "chain"
        assert (runs(comm), runs(comm, "broadcast")) == ("", "")

    on_ranks(3, work)


def test_what_is_returned_can_be_used_again_and_within_itself() -> None:
    def work(comm: cl.Communicator) -> None:
        ring, chain = comm.force(allreduce="ring"), comm.force(allreduce="chain")
        for _ in range(2):
            with ring, chain:
                with ring:
                    assert runs(comm) == "ring"
                assert runs(comm) == "chain"
            assert runs(comm) == ""
        left = ExitStack()
        with ring:
            left.enter_context(chain)
        assert runs(comm) == "chain"
        left.close()
        assert runs(comm) == ""

    on_ranks(3, work)


def test_what_cannot_be_wished_for_leaves_no_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    (comm,) = cl.local(1)
    usual = installed.install

    def fails(*_: object) -> None:
        raise cl.OutOfMemoryError("no memory")

    wish = comm.force(allreduce="ring")
    monkeypatch.setattr(installed, "install", fails)
    with pytest.raises(cl.OutOfMemoryError):
        wish.__enter__()
    monkeypatch.setattr(installed, "install", usual)
    assert runs(comm) == ""
    with comm.force(broadcast="chain"):
        assert runs(comm) == ""
    with wish:
        comm.close()  # there is nothing to take back
