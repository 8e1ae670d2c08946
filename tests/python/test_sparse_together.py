# SPDX-License-Identifier: Apache-2.0
"""Sparse collectives among other calls: in flight, in groups and structures, beside messages."""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks, on_wired_ranks

P = 3
BOTH = pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
Among = Callable[..., list[Any]]


def vector(comm: cl.Communicator, scale: float = 1, length: int = 50) -> cl.Sparse:
    """Return one element that all have, and one of this rank's own."""
    return cl.Sparse(np.array([9, comm.rank]), np.array([1.0, comm.rank + 1.0]) * scale, length)


def total(scale: float = 1, p: int = P, length: int = 50) -> list[float]:
    whole = np.zeros(length)
    whole[:p], whole[9] = np.arange(1, p + 1), p
    return list((whole * scale).tolist())


def dense(x: Any) -> list[float]:
    return list((x.dense() if isinstance(x, cl.Sparse) else x).tolist())


@BOTH
def test_handles_keep_their_order_with_other_calls(among: Among) -> None:
    def work(comm: cl.Communicator) -> None:
        x, sums = np.ones(4), []
        for step in range(1, 6):
            sums.append(comm.allreduce(vector(comm, step), async_op=True))
            comm.allreduce(x, async_op=True)
            if step == 3:
                assert dense(comm.allreduce(vector(comm), output="sparse")) == total()
        moved = comm.allgather(vector(comm), async_op=True, output="dense")
        assert [dense(pending.wait()) for pending in sums] == [total(s) for s in range(1, 6)]
        assert moved.wait().size == P * 50
        comm.barrier()
        assert x.tolist() == [P**5] * 4

    among(P, work)


def test_a_handle_sees_what_calls_before_it_wrote() -> None:
    def work(comm: cl.Communicator) -> None:
        wide = np.ones((3, 2))
        x = cl.Sparse(np.arange(3), wide[:, 0], 9)  # strided: packed where it is used
        comm.allreduce(wide, async_op=True)
        assert dense(comm.allreduce(x, async_op=True).wait()) == [P * P] * 3 + [0] * 6
        with comm.group():
            comm.allreduce(wide)
            later = comm.allreduce(x, async_op=True, algorithm="ring")
        assert dense(later.wait()) == [P**3] * 3 + [0] * 6

    on_ranks(P, work)


def test_in_a_group() -> None:
    def work(comm: cl.Communicator) -> None:
        few, more = np.ones(2), np.ones(3)
        with comm.group():
            comm.allreduce(few)
            now = comm.allreduce(vector(comm))  # launches what is before it
            assert few.tolist() == [P] * 2
            assert dense(now) == total()
            comm.allreduce(more)
            later = comm.allreduce(vector(comm, 2), async_op=True)
            comm.allreduce(few)
            with pytest.raises(cl.InvalidArgumentError, match="it begins at the end of its group"):
                later.wait()
        assert dense(later.wait()) == total(2)
        assert (few.tolist(), more.tolist()) == ([P * P] * 2, [P] * 3)
        with comm.group():
            alone = comm.broadcast(vector(comm), 1, async_op=True)
        assert dense(alone.wait()) == dense(cl.Sparse(np.array([9, 1]), np.array([1.0, 2.0]), 50))

    on_ranks(P, work)


def test_what_is_in_flight_makes_its_calls_beside_a_group() -> None:
    """A job's own calls are no calls of the group that the program is in meanwhile."""

    def work(comm: cl.Communicator) -> None:
        begun, go = threading.Event(), threading.Event()

        def job() -> Any:
            begun.set()
            assert go.wait(20)
            first = comm.allreduce(vector(comm), output="sparse")
            return first, comm.allreduce(np.ones(2)), comm.allreduce(np.ones(2), timeout=10)

        pending = comm._submit("job", job)
        assert begun.wait(20)
        x = np.full(3, 2.0)
        with comm.group():
            comm.allreduce(x)
            go.set()
            first, plain, other = pending.wait()
            assert dense(first) == total()
            assert plain.tolist() == other.tolist() == [P] * 2
            assert x.tolist() == [2.0] * 3
        assert x.tolist() == [2.0 * P] * 3

    on_ranks(P, work)


def test_an_error_in_a_group_reaches_the_handle() -> None:
    def work(comm: cl.Communicator) -> None:
        with contextlib.suppress(ZeroDivisionError), comm.group():
            later = comm.allreduce(vector(comm), async_op=True)
            raise ZeroDivisionError
        with pytest.raises(cl.CollectiveError, match="sparse allreduce was not made"):
            later.wait()
        assert dense(comm.allreduce(vector(comm))) == total()

    on_ranks(P, work)


def test_in_structures_of_arrays() -> None:
    def work(comm: cl.Communicator) -> None:
        for async_op in (False, True):
            bias, rows = np.ones(2), np.ones((2, 2))
            given = {"bias": bias, "table": vector(comm), "more": [rows, vector(comm, 3)]}
            found = comm.allreduce(given, async_op=async_op)
            found = found.wait() if async_op else found
            assert (found["bias"] is bias, found["more"][0] is rows) == (True, True)
            assert bias.tolist() == [P] * 2
            assert dense(found["table"]) == total()
            assert dense(found["more"][1]) == total(3)
        x, s = comm.broadcast((np.full(2, comm.rank), vector(comm)), 2)
        assert x.tolist() == [2, 2]
        assert dense(s)[2] == 3
        with (
            pytest.raises(cl.InvalidArgumentError, match=r"x\[1\] is sparse, .* pass async_op"),
            comm.group(),
        ):
            comm.allreduce([np.ones(2), vector(comm)])
        comm.barrier()

    on_ranks(P, work)


@BOTH
def test_keys_of_structures_are_compared(among: Among) -> None:
    def work(comm: cl.Communicator) -> str:
        key = "a" if comm.rank else "b"
        with pytest.raises(cl.MismatchError) as caught:
            comm.allreduce({key: vector(comm)})
        return str(caught.value)

    for text in among(P, work):
        assert "for x['a']" in text
        assert "for x['b']" in text


@BOTH
def test_receives_of_anything_get_nothing_of_a_sparse_call(among: Among) -> None:
    def work(comm: cl.Communicator) -> None:
        out = np.zeros(3, np.uint8)
        posted = comm.irecv(out, cl.ANY_SOURCE, cl.ANY_TAG)
        typed = comm.irecv(np.zeros(2), (comm.rank - 1) % P, cl.ANY_TAG)
        for name in [a.name for a in cl.sparse_algorithms("allreduce")]:
            assert dense(comm.allreduce(vector(comm), algorithm=name)) == total()
        assert comm.iprobe(cl.ANY_SOURCE, cl.ANY_TAG) is None
        assert not posted.done()
        comm.barrier()
        right = (comm.rank + 1) % P
        comm.send(np.full(3, 7, np.uint8), right, 5)
        comm.send(np.full(2, 8.0), right, 6)
        assert posted.wait() is out
        assert out.tolist() == [7] * 3
        assert typed.wait().tolist() == [8.0] * 2
        comm.barrier()

    among(P, work)


@BOTH
def test_messages_that_are_on_their_way_reach_their_receives(among: Among) -> None:
    """Also long ones, which nobody receives before the sparse call, and early ones."""

    def work(comm: cl.Communicator) -> None:
        right, left = (comm.rank + 1) % P, (comm.rank - 1) % P
        sizes = (1, 300_000, 5)
        sends = [comm.isend(np.full(n, comm.rank), right, tag) for tag, n in enumerate(sizes)]
        early = comm.irecv(np.zeros(sizes[1], int), left, 1)
        for name in ("ring", "ssar_split_allgather", "ssar_recursive_double", "allgather"):
            x = cl.Sparse(np.arange(40_000), np.ones(40_000), 400_000)
            found = comm.allreduce(x, algorithm=name, output="sparse")
            assert (found.values == P).all()
            assert found.nnz == 40_000
        for tag in (2, 0):
            assert set(comm.recv(np.zeros(sizes[tag], int), left, tag).tolist()) == {left}
        assert set(early.wait().tolist()) == {left}
        for send in sends:
            send.wait()

    among(P, work)


@BOTH
def test_groups_and_persistent_calls(among: Among) -> None:
    def work(comm: cl.Communicator) -> None:
        x = np.ones(4)
        again = comm.persistent.allreduce(x)
        again()
        assert dense(comm.allreduce(vector(comm))) == total()
        again.start()
        assert dense(comm.allreduce(vector(comm, 2))) == total(2)  # finishes it first
        again.wait()
        assert x.tolist() == [P * P] * 4
        with pytest.raises(
            cl.InvalidArgumentError, match="persistent call is there of plain arrays"
        ):
            comm.persistent.allreduce(vector(comm))
        with comm.dup() as twin:
            pending = comm.allreduce(vector(comm, 5), async_op=True)
            assert dense(twin.allreduce(vector(twin))) == total()
            assert dense(pending.wait()) == total(5)
        part = comm.split(0 if comm.rank < 2 else 1, key=-comm.rank)
        assert part is not None
        with part:
            assert dense(part.allreduce(vector(part))) == total(1, part.size)
            part.barrier()

    among(P, work)


@BOTH
def test_the_last_call(among: Among) -> None:
    def work(comm: cl.Communicator) -> None:
        assert comm.last is None
        for kind in ("allreduce", "reduce_scatter", "allgather", "broadcast"):
            for algorithm in cl.sparse_algorithms(kind):
                getattr(comm, kind)(vector(comm, length=60), algorithm=algorithm.name)
                last = comm.last
                assert last is not None
                assert (last.kind, last.algorithm) == (f"sparse {kind}", algorithm.name)
                assert (last.mode, last.sequence) == ("messages", comm.sequence)
                assert last.rounds > 0
                assert last.messages > 0 or kind == "broadcast"
                # A word for the call, for each message a word, and pairs of 12 bytes.
                assert last.nbytes % 8 == 0
                assert 16 * last.messages <= last.nbytes <= 16 * last.messages + 60 * 12 * P
                assert 0 < last.seconds < 20
                assert math.isnan(last.busbw)
                assert math.isnan(last.waiting)
                assert f"sparse {kind} of " in str(last)
                assert f"by {algorithm.name} (messages)" in str(last)
        comm.allreduce(vector(comm), algorithm="dense")
        last = comm.last
        assert last is not None
        assert (last.kind, last.algorithm, last.nbytes) == ("sparse allreduce", "dense", 50 * 8)
        assert (last.rounds, last.messages, last.sequence) == (0, 0, comm.sequence)
        comm.barrier()
        last = comm.last
        assert last is not None
        assert (last.kind, last.rounds, last.messages) == ("barrier", 0, 0)
        if comm.rank:
            comm.allreduce(vector(comm), async_op=True)
        else:
            comm.allreduce(vector(comm))
        last = comm.last  # waits for it
        assert last is not None
        assert last.kind == "sparse allreduce"

    among(P, work)


@BOTH
def test_a_rank_that_closes_is_named(among: Among) -> None:
    def work(comm: cl.Communicator) -> None:
        comm.allreduce(vector(comm))
        if comm.rank == 1:
            comm.close()
            return
        with pytest.raises(cl.PeerLostError, match=r"rank 1 .*closed") as caught:
            comm.allreduce(vector(comm))
        assert caught.value.rank == 1
        with pytest.raises(cl.PeerLostError, match="rank 1 "):
            comm.allgather(vector(comm))

    among(P, work)


@BOTH
def test_an_abort_of_another_thread_ends_it(among: Among) -> None:
    def work(comm: cl.Communicator) -> None:
        comm.allreduce(vector(comm))
        if comm.rank == 1:  # it makes another call, which ends alike
            with pytest.raises(cl.AbortedError, match="enough"):
                comm.recv(np.zeros(1), 1)
            return
        if comm.rank == 0:
            timer = threading.Timer(0.05, lambda: comm.abort("enough"))
            timer.start()
        with pytest.raises(cl.AbortedError, match="rank 0 aborted: enough"):
            comm.allreduce(vector(comm))

    among(P, work)


@BOTH
def test_who_does_not_come_is_waited_for_as_long_as_was_said(among: Among) -> None:
    over = threading.Barrier(P)

    def work(comm: cl.Communicator) -> None:
        comm.allreduce(vector(comm))
        if comm.rank == 1:
            over.wait(20)
            return
        with pytest.raises(cl.CollectiveTimeoutError, match=r"after 0\.15 s: .*rank 1 .*silent"):
            comm.allreduce(vector(comm), timeout=0.15)
        over.wait(20)

    among(P, work)


def test_the_last_call_after_a_failure() -> None:
    def work(comm: cl.Communicator) -> None:
        comm.allreduce(vector(comm))
        with pytest.raises(cl.MismatchError):
            comm.allreduce(vector(comm, length=60 if comm.rank else 50))
        assert comm.last is None

    on_ranks(P, work)


@BOTH
def test_traces_name_it(among: Among, tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def work(comm: cl.Communicator) -> None:
        many = cl.Sparse(np.arange(900), np.ones(900), 6000)  # too many to go with the agreement
        with comm.trace(path):
            for kind in ("allreduce", "reduce_scatter", "allgather", "broadcast"):
                getattr(comm, kind)(many)
            comm.allreduce(vector(comm), algorithm="dense")

    among(P, work)
    events = json.loads(path.read_text())["traceEvents"]
    names = [e["name"] for e in events if e.get("cat") == "operation" and e["pid"] == 0]
    kinds = ["sparse allreduce", "sparse reduce_scatter", "sparse allgather", "sparse broadcast"]
    assert [name for name in names if name != "barrier"][:6] == [
        *kinds, "sparse allreduce", "allreduce",
    ]  # fmt: skip
    assert {"isend", "wait"} <= {e["name"] for e in events if e.get("cat") == "message"}


def test_a_bad_index_in_a_structure_is_found_before_anything_is_reduced() -> None:
    def work(comm: cl.Communicator) -> None:
        ones, bad = np.ones(3), cl.Sparse(np.array([2, 9]), np.ones(2), 9)
        words = r"sparse allreduce: index 9 \(at 1\) is none of a vector of 9 elements"
        for async_op in (False, True):
            with pytest.raises(cl.InvalidArgumentError, match=words):
                comm.allreduce({"a": ones, "b": [bad]}, async_op=async_op)
        with pytest.raises(cl.InvalidArgumentError, match=r"index -1 \(at 0\)"), comm.group():
            comm.allreduce(cl.Sparse(np.array([-1]), np.ones(1), 9), async_op=True)
        # Of what is broadcast only the root's is looked at.
        mine = bad if comm.rank else cl.Sparse(np.array([1]), np.ones(1), 9)
        assert comm.broadcast([ones, mine])[1].nnz == 1
        comm.barrier()
        assert ones.tolist() == [1, 1, 1]

    on_ranks(P, work)
