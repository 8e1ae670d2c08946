# SPDX-License-Identifier: Apache-2.0
"""What a rank does alone in a call looks at the clock and at signals: others wait for it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.patience import promised
from tests.python.ranks import on_ranks

LENGTH = 1 << 28
Work = Callable[..., Any]


def unsorted(n: int) -> Any:
    return np.random.default_rng(n).integers(0, LENGTH, n, np.int32)


def made(name: str, n: int) -> Work:
    """Return a call with so many elements of its own to work on."""
    if name == "adasum":
        ones = np.ones(2 * n)
        return lambda comm, **options: comm.allreduce(ones, op="adasum", **options)
    if name == "dense":
        few = cl.Sparse(np.arange(3), np.ones(3), 4 * n)
        return lambda comm, **options: comm.allreduce(few, algorithm="dense", **options)
    places = unsorted(n)
    if name == "plan":
        return lambda comm, **options: comm.sparse_plan(places, length=LENGTH, **options)
    x = cl.Sparse(places, np.ones(n, "float32"), LENGTH)
    return lambda comm, **options: comm.allreduce(x, **options)


CALLS = {
    "sort": "sparse allreduce",
    "plan": "sparse_plan",
    "dense": "sparse allreduce",
    "adasum": "adasum",
}


@pytest.mark.parametrize("name", CALLS)
def test_a_time_out_ends_it(name: str) -> None:
    work = made(name, 5_000_000)

    def body(comm: cl.Communicator) -> None:
        comm.barrier()
        said = rf"{CALLS[name]} #2: rank 0 gave up after 0\.004 s: it was still at work"
        with pytest.raises(cl.CollectiveTimeoutError, match=said) as caught:
            work(comm, timeout=0.004)
        assert caught.value.rank == 0

    on_ranks(1, body)


@pytest.mark.parametrize("name", ["sort", "plan"])
def test_the_others_are_told(name: str) -> None:
    long, short = made(name, 5_000_000), made(name, 10)

    def body(comm: cl.Communicator) -> None:
        said = f"{CALLS[name]} #1: rank 0 gave up after 0.01 s: it was still at work"
        with pytest.raises(cl.CollectiveTimeoutError, match=said) as caught:
            short(comm) if comm.rank else long(comm, timeout=0.01)
        assert caught.value.rank == 0

    on_ranks(2, body)


def test_an_abort_ends_it() -> None:
    """By another thread, in its midst: the call is begun before, and need not be done by then."""
    long = made("sort", 5_000_000)
    comm = cl.local(1)[0]
    pending = long(comm, async_op=True)
    comm.abort("no disk left")
    with pytest.raises(cl.AbortedError, match="no disk left"):
        pending.wait()
    comm.close()


@contextmanager
def signalled(after: float) -> Iterator[list[float]]:
    """Raise KeyboardInterrupt by a signal so many seconds later; yield a list of when that is."""

    def handle(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        yield [time.monotonic() + after]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("name", "n"), [("sort", 20_000_000), ("plan", 10_000_000), ("dense", 50_000_000)]
)
def test_ctrl_c_ends_it(name: str, n: int) -> None:
    """A handler that raises ends the call, and all later ones; soon, once in three tries."""
    work, waits = made(name, n), []
    for _ in range(3):
        comm = cl.local(1)[0]
        with pytest.raises(KeyboardInterrupt), signalled(0.05) as came:
            work(comm)
        waits.append(time.monotonic() - came[0])
        with pytest.raises(cl.AbortedError, match=r"interrupted in sparse.* by KeyboardInterrupt"):
            comm.barrier()
        comm.close()
    assert min(waits) < promised(0.2)


def test_a_handler_that_does_not_raise_lets_it_go_on() -> None:
    work, seen = made("sort", 5_000_000), []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(comm.sequence))
    comm = cl.local(1)[0]
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert work(comm, output="sparse").values.sum() == 5_000_000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    comm.barrier()
    comm.close()
    assert seen in ([0], [1])  # the second where the call was done before


FAR = cl.Sparse(np.array([1, 2**44 - 1]), np.ones(2), 2**44)  # 128 TiB


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("allreduce", {"output": "dense"}),
        ("allreduce", {"algorithm": "dense"}),
        ("allreduce", {"algorithm": "dsar_split_allgather"}),
        ("allreduce", {"compress": cl.QSGD(4)}),
        ("reduce_scatter", {"output": "dense"}),
        ("allgather", {"output": "dense"}),
        ("broadcast", {"output": "dense", "root": 1}),
    ],
)
def test_a_result_that_no_memory_holds(kind: str, options: dict[str, Any]) -> None:
    """All are told before anything is sent, and work on."""

    def body(comm: cl.Communicator) -> None:
        size = {"reduce_scatter": 64, "allgather": 256}.get(kind, 128)
        said = f"^sparse {kind} #1: rank 0 has no memory for the {size} TiB of a vector"
        with pytest.raises(cl.OutOfMemoryError, match=said) as caught:
            getattr(comm, kind)(FAR, **options)
        assert isinstance(caught.value, MemoryError)
        assert caught.value.rank == 0
        assert comm.allreduce(FAR, output="sparse").values.tolist() == [2, 2]

    on_ranks(2, body)


def test_what_turns_out_to_be_too_large_is_told_with_its_bytes() -> None:
    def body(comm: cl.Communicator) -> None:
        said = r"^sparse allreduce #1: rank \d is out of memory: it has no \d+ TiB for its vector"
        with pytest.raises(cl.OutOfMemoryError, match=said):
            comm.allreduce(FAR, dense_above=0)

    on_ranks(2, body)
