# SPDX-License-Identifier: Apache-2.0
"""The life of a communicator: close, abort, threads, fork, signals, garbage."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives import default


@pytest.fixture
def pair() -> Iterator[list[cl.Communicator]]:
    comms = cl.local(2, timeout=20)
    yield comms
    for comm in comms:
        comm.close()


def test_properties(pair: list[cl.Communicator]) -> None:
    assert [(c.rank, c.size, c.closed, c.sequence) for c in pair] == [
        (0, 2, False, 0),
        (1, 2, False, 0),
    ]
    assert repr(pair[1]) == "<Communicator rank 1 of 2>"


def test_sequence_counts_calls_and_survives_close(threads: Any, pair: list[Any]) -> None:
    threads(pair, lambda comm: [comm.barrier() for _ in range(3)])
    pair[0].close()
    assert [comm.sequence for comm in pair] == [3, 3]


def test_close_is_local_and_idempotent(pair: list[cl.Communicator]) -> None:
    for _ in range(3):
        pair[0].close()
    assert pair[0].closed
    assert repr(pair[0]) == "<Communicator rank 0 of 2, closed>"
    assert not pair[1].closed


def test_every_call_after_close_says_so(pair: list[cl.Communicator]) -> None:
    comm = pair[0]
    comm.close()
    x = np.ones(2)
    calls = (
        comm.barrier,
        lambda: comm.allreduce(x),
        lambda: comm.allreduce(x, np.empty(2)),
        lambda: comm.allgatherv(x, [2, 2]),
        lambda: comm.abort("no more"),
        comm.__enter__().barrier,
    )
    for call in calls:
        with pytest.raises(cl.ClosedError, match="rank 0 has closed this communicator") as caught:
            call()
        assert caught.value.rank == 0


def test_a_call_without_the_rank_that_closed_names_it(pair: list[cl.Communicator]) -> None:
    pair[1].close()
    with pytest.raises(cl.PeerLostError, match=r"rank 1 .*closed") as caught:
        pair[0].allreduce(np.ones(2))
    assert caught.value.rank == 1


def test_abort_ends_present_and_later_calls_everywhere(pair: list[cl.Communicator]) -> None:
    threading.Timer(0.05, pair[1].abort, ["no disk left"]).start()
    for comm in (pair[0], pair[0], pair[1]):
        with pytest.raises(cl.AbortedError, match="rank 1 aborted: no disk left") as caught:
            comm.barrier()
        assert caught.value.rank == 1


def test_a_block_closes(pair: list[cl.Communicator]) -> None:
    with pair[0] as comm:
        assert comm is pair[0]
    assert comm.closed


def test_a_block_that_raises_tells_the_others_why(pair: list[cl.Communicator]) -> None:
    with pytest.raises(KeyError), pair[1]:
        raise KeyError("learning rate")
    assert pair[1].closed
    with pytest.raises(cl.AbortedError, match="rank 1 aborted: it raised KeyError: 'learn"):
        pair[0].barrier()


def test_a_block_may_close_early_and_still_raise(pair: list[cl.Communicator]) -> None:
    def close_and_raise() -> None:
        with pair[0] as comm:
            comm.close()
            raise KeyError

    with pytest.raises(KeyError):
        close_and_raise()


def test_an_error_of_the_group_leaves_the_block_as_it_is(pair: list[cl.Communicator]) -> None:
    pair[1].close()
    with pytest.raises(cl.PeerLostError), pair[0] as comm:
        comm.barrier()


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_communicator_does_not_travel(threads: Any, pair: list[Any], take: Any) -> None:
    with pytest.raises(TypeError, match=r"each process makes its own with collectives\.init\(\)"):
        take(pair[0])
    gc.collect()
    assert threads(pair, lambda comm: float(comm.allreduce(np.ones(1))[0])) == [2, 2]


def test_garbage_is_closed(pair: list[cl.Communicator]) -> None:
    pair.pop()
    gc.collect()
    with pytest.raises(cl.PeerLostError, match=r"rank 1 .*closed"):
        pair[0].barrier()


def until_in_call(comm: cl.Communicator) -> None:
    deadline = time.monotonic() + 10
    while not comm.sequence and time.monotonic() < deadline:
        time.sleep(0.001)
    assert comm.sequence == 1


def test_two_threads_in_one_communicator_are_told(pair: list[cl.Communicator]) -> None:
    waiting = threading.Thread(target=lambda: pair[0].allreduce(np.ones(2)))
    waiting.start()
    until_in_call(pair[0])
    with pytest.raises(cl.InvalidArgumentError, match="another thread is in a call"):
        pair[0].barrier()
    pair[1].allreduce(np.ones(2))  # the first thread's call is not disturbed
    waiting.join(10)
    assert not waiting.is_alive()


def test_close_ends_the_call_of_another_thread(pair: list[cl.Communicator]) -> None:
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            pair[0].barrier()
        except cl.CollectiveError as error:
            caught.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until_in_call(pair[0])
    pair[0].close()
    waiting.join(10)
    assert [type(error) for error in caught] == [cl.AbortedError]
    with pytest.raises(cl.AbortedError, match="rank 0 aborted: it closed its communicator during"):
        pair[1].barrier()


def test_a_signal_handler_may_close(pair: list[cl.Communicator]) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: pair[0].close())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(cl.AbortedError):
            pair[0].barrier()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert pair[0].closed


def test_an_exception_of_a_signal_handler_ends_the_call_everywhere(
    pair: list[cl.Communicator],
) -> None:
    def handler(*_: object) -> None:
        raise InterruptedError("enough")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError, match="enough"):
            pair[0].barrier()
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(cl.AbortedError, match="it was interrupted in barrier by InterruptedError"):
        pair[1].barrier()


def in_child(check: Any) -> int:
    """Run ``check`` in a forked child; 0 where it raised nothing."""
    pid = os.fork()
    if pid == 0:
        try:
            check()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"in the child: {error!r}\n".encode())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_is_refused_and_harms_nobody(pair: list[Any], threads: Any) -> None:
    def child() -> None:
        for call in (pair[0].barrier, lambda: pair[0].allreduce(np.ones(2))):
            with pytest.raises(cl.ClosedError) as caught:
                call()
            assert f"belongs to process {os.getppid()}, from which this" in str(caught.value)
            assert "make a new one in the child, in a job of its own" in str(caught.value)
            assert caught.value.rank == 0
        assert pair[0].closed
        pair[0].close()
        pair.clear()
        gc.collect()

    assert in_child(child) == 0
    assert threads(pair, lambda comm: float(comm.allreduce(np.ones(1))[0])) == [2, 2]


def test_a_forked_child_makes_its_own(pair: list[cl.Communicator]) -> None:
    def child() -> None:
        comm = cl.local(1)[0]
        assert comm.allreduce(np.ones(2)).tolist() == [1, 1]

    assert in_child(child) == 0


def test_handles_may_be_made_by_threads_that_end(threads: Any) -> None:
    made: list[cl.Communicator] = []
    maker = threading.Thread(target=lambda: made.extend(cl.local(2, timeout=20)))
    maker.start()
    maker.join()
    assert threads(made, lambda comm: float(comm.allreduce(np.ones(1))[0])) == [2, 2]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the default communicator before and after, in an environment without a job."""
    for name in ("RANK", "SIZE", "JOB", "ATTEMPT", "TIMEOUT"):
        monkeypatch.delenv(f"COLLECTIVES_{name}", raising=False)
    monkeypatch.setattr(default, "_default", None)
    yield
    default._leave()


@pytest.mark.usefixtures("alone")
def test_drop_in_functions_make_the_default_communicator() -> None:
    x = np.arange(3.0)
    assert cl.allreduce(x) is x
    assert cl.reduce_scatter(x).tolist() == [0, 1, 2]
    assert cl.allgather(x).tolist() == [0, 1, 2]
    assert cl.allgatherv(x, [3]).tolist() == [0, 1, 2]
    assert cl.broadcast(x) is x
    assert cl.reduce(x, op="max") is x
    cl.barrier()
    assert default.default().sequence == 7


@pytest.mark.usefixtures("alone")
def test_a_second_init_is_refused_until_the_first_is_closed() -> None:
    first = cl.init()
    assert default.default() is first
    with pytest.raises(cl.InvalidArgumentError, match="was called before in this process"):
        cl.init()
    first.close()
    with pytest.raises(cl.ClosedError):
        cl.barrier()
    second = cl.init(timeout=5)
    assert default.default() is second
    cl.barrier()


@pytest.mark.usefixtures("alone")
def test_many_are_made_and_closed_without_leaking_descriptors() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    cl.init().close()
    before = descriptors()
    for _ in range(20):
        cl.init().close()
        for comm in cl.local(3):
            comm.close()
    assert descriptors() == before
