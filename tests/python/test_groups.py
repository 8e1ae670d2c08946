# SPDX-License-Identifier: Apache-2.0
"""Groups of the ranks of a communicator, with ranks that are threads."""

from __future__ import annotations

import gc
import math
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests import groups as checks


@pytest.fixture
def quartet() -> Iterator[list[cl.Communicator]]:
    comms = cl.local(4, timeout=20)
    yield comms
    for comm in comms:
        comm.close()


def total(comm: cl.Communicator, x: float = 1.0) -> float:
    return float(comm.allreduce(np.array([x]))[0])


@pytest.mark.parametrize("p", range(1, 9))
@pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.__name__)
def test_groups(p: int, threads: Any, check: Callable[..., list[str]]) -> None:
    assert threads(cl.local(p, timeout=20), check) == [[]] * p


def test_a_group_is_a_communicator_like_any_other(threads: Any, quartet: list[Any]) -> None:
    def work(comm: cl.Communicator) -> None:
        half = comm.split(comm.rank // 2)
        assert half is not None
        assert type(half) is cl.Communicator
        assert repr(half) == f"<Communicator rank {comm.rank % 2} of 2>"
        assert (half.closed, half.sequence) == (False, 0)
        with half as same:
            assert same is half
            assert total(half) == 2
        assert half.closed
        assert half.sequence == 1
        with pytest.raises(cl.ClosedError, match=f"rank {comm.rank % 2} has closed"):
            half.barrier()
        assert total(comm) == 4

    threads(quartet, work)


def test_the_time_out_is_that_of_the_parent(threads: Any) -> None:
    pairs: list[cl.Communicator] = []

    def work(comm: cl.Communicator) -> None:
        pair = comm.dup()
        pairs.append(pair)  # rank 1 keeps its own open
        if comm.rank == 0:
            with pytest.raises(cl.CollectiveTimeoutError, match=r"gave up after 0\.3 s"):
                pair.barrier()

    threads(cl.local(2, timeout=0.3), work)


def test_a_block_that_raises_ends_its_own_group_only(threads: Any, quartet: list[Any]) -> None:
    def fail_in(comm: cl.Communicator) -> None:
        with comm:
            raise KeyError("learning rate")

    def work(comm: cl.Communicator) -> None:
        half = comm.split(comm.rank // 2)
        assert half is not None
        if comm.rank == 3:
            with pytest.raises(KeyError):
                fail_in(half)
        elif comm.rank == 2:
            with pytest.raises(cl.AbortedError, match="rank 1 aborted: it raised KeyError"):
                half.barrier()
        else:
            assert total(half) == 2
        assert total(comm) == 4

    threads(quartet, work)


def test_garbage_is_closed(threads: Any) -> None:
    def work(comm: cl.Communicator) -> None:
        pair = comm.dup()
        comm.barrier()
        if comm.rank == 1:
            del pair
            gc.collect()
        else:
            with pytest.raises(cl.PeerLostError, match=r"rank 1 .*closed"):
                pair.barrier()
        comm.barrier()

    threads(cl.local(2, timeout=20), work)


def test_a_lost_rank_has_the_number_of_its_group(threads: Any, quartet: list[Any]) -> None:
    def work(comm: cl.Communicator) -> None:
        reverse = comm.subgroup([3, 2, 1])
        comm.barrier()
        if comm.rank == 3:
            assert reverse is not None
            reverse.close()
        if comm.rank in (1, 2):
            assert reverse is not None
            with pytest.raises(cl.PeerLostError, match="rank 3 of the world") as caught:
                reverse.barrier()
            assert caught.value.rank == 0
        assert total(comm) == 4

    threads(quartet, work)


def test_a_mesh(threads: Any) -> None:
    def work(comm: cl.Communicator) -> None:
        with comm.mesh((2, 4), ("dp", "tp")) as mesh:
            assert (mesh.shape, mesh.names) == ((2, 4), ("dp", "tp"))
            assert mesh.coordinates == np.unravel_index(comm.rank, (2, 4))
            assert list(mesh) == ["dp", "tp"]
            assert len(mesh) == 2
            assert repr(mesh) == f"<Mesh dp=2, tp=4: this rank at {mesh.coordinates}>"
            assert mesh["tp"].size == 4
            with pytest.raises(
                cl.InvalidArgumentError, match="axis 'tpp' is unknown: did you mean"
            ):
                mesh["tpp"]
        assert mesh["dp"].closed
        assert mesh["tp"].closed
        assert total(comm) == 8

    threads(cl.local(8, timeout=20), work)


def test_a_block_of_a_mesh_that_raises_tells_along_all_axes(threads: Any, quartet: Any) -> None:
    def fail_in(mesh: cl.Mesh) -> None:
        with mesh:
            raise KeyError

    def work(comm: cl.Communicator) -> None:
        mesh = comm.mesh([2, 2], ["rows", "columns"])
        if comm.rank == 0:
            with pytest.raises(KeyError):
                fail_in(mesh)
        else:
            told = {1: ["columns"], 2: ["rows"], 3: []}[comm.rank]
            for name in mesh:
                if name in told:
                    with pytest.raises(cl.AbortedError, match="it raised KeyError"):
                        mesh[name].barrier()
                else:
                    assert mesh[name].size == 2
        assert total(comm) == 4

    threads(quartet, work)


BAD: list[tuple[str, Callable[[cl.Communicator], Any]]] = [
    ("color is -1: give 0 or more, or None", lambda c: c.split(-1)),
    ("color is 1.5", lambda c: c.split(1.5)),  # type: ignore[arg-type]
    ("color is 'red'", lambda c: c.split("red")),  # type: ignore[arg-type]
    ("color is True", lambda c: c.split(True)),
    ("color is 9223372036854775808", lambda c: c.split(2**63)),
    ("key is None: give an integer", lambda c: c.split(0, None)),  # type: ignore[arg-type]
    ("key is 0.5", lambda c: c.split(0, 0.5)),  # type: ignore[arg-type]
    ("key is -9223372036854775809", lambda c: c.split(None, -(2**63) - 1)),
    (r"4 in \[0, 4\] is none of the ranks 0 to 3", lambda c: c.subgroup([0, 4])),
    (r"-1 in \(-1,\) is none of the ranks", lambda c: c.subgroup((-1,))),
    (r"\[1, 2, 1\] names a rank twice", lambda c: c.subgroup([1, 2, 1])),
    (r"ranks is \[0.0\]: give a list", lambda c: c.subgroup([0.0])),  # type: ignore[list-item]
    ("ranks is 3: give a list", lambda c: c.subgroup(3)),  # type: ignore[arg-type]
    (r"ranks is \[4294967296\]", lambda c: c.subgroup([2**32])),
    (r"shape is \(2, 3\): .* product is 4", lambda c: c.mesh((2, 3), ("a", "b"))),
    (r"shape is \(0, 4\)", lambda c: c.mesh((0, 4), ("a", "b"))),
    (r"shape is \(-2, -2\)", lambda c: c.mesh((-2, -2), ("a", "b"))),
    (r"shape is \(\)", lambda c: c.mesh((), ())),
    ("shape is 4: give a list", lambda c: c.mesh(4, ("a",))),  # type: ignore[arg-type]
    (r"names is \('a', 'a'\): give 2 different", lambda c: c.mesh((2, 2), ("a", "a"))),
    (r"names is \('a',\)", lambda c: c.mesh((2, 2), ("a",))),
    ("names is 'ab': give 2 different", lambda c: c.mesh((2, 2), "ab")),
    (r"names is \('a', ''\)", lambda c: c.mesh((2, 2), ("a", ""))),
    (r"names is \('a', 1\)", lambda c: c.mesh((2, 2), ("a", 1))),  # type: ignore[arg-type]
    ("names is None", lambda c: c.mesh((2, 2), None)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("words", "call"), BAD)
def test_bad_input_is_refused_and_harms_nobody(
    words: str, call: Callable[[cl.Communicator], Any], threads: Any, quartet: list[Any]
) -> None:
    for comm in quartet:
        with pytest.raises(cl.InvalidArgumentError, match=words):
            call(comm)
    assert threads(quartet, total) == [4] * 4
    assert [comm.sequence for comm in quartet] == [1] * 4


def test_ranks_that_do_not_ask_for_the_same_are_told(threads: Any) -> None:
    def work(comm: cl.Communicator) -> None:
        names = ("dp", "tp") if comm.rank < 3 else ("tp", "dp")
        with pytest.raises(cl.MismatchError, match=r"rank 0 for axis 0 \(dp\) .* rank 3 for axis"):
            comm.mesh((2, 2), names)
        with pytest.raises(cl.MismatchError):
            comm.dup()

    threads(cl.local(4, timeout=20), work)


def test_a_closed_communicator_forms_no_groups(quartet: list[cl.Communicator]) -> None:
    quartet[0].close()
    calls: list[Callable[[cl.Communicator], Any]] = [
        lambda comm: comm.split(0),
        lambda comm: comm.subgroup([0]),
        lambda comm: comm.dup(),
        lambda comm: comm.mesh((4,), ("a",)),
    ]
    for call in calls:
        with pytest.raises(cl.ClosedError, match="rank 0 has closed"):
            call(quartet[0])


def test_an_exception_of_a_signal_handler_ends_a_split(quartet: list[Any]) -> None:
    def handler(*_: object) -> None:
        raise InterruptedError("enough")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError, match="enough"):
            quartet[0].split(0)
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(cl.AbortedError, match="it was interrupted in split by InterruptedError"):
        quartet[1].split(0)


def test_groups_of_one_rank_run_at_once_in_threads_of_their_own(threads: Any) -> None:
    def work(comm: cl.Communicator) -> list[float]:
        groups = [comm.dup() for _ in range(3)]
        found = [math.nan] * 3

        def run(i: int) -> None:
            found[i] = sum(total(groups[i], comm.rank + i) for _ in range(20))

        running = [threading.Thread(target=run, args=(i,)) for i in range(3)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(60)
        return found

    assert threads(cl.local(2, timeout=20), work) == [[20.0, 60.0, 100.0]] * 2
