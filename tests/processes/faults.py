# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_faults` do: rank 1 fails, the others watch.

Each scenario runs in forked children, in an attempt of its own, so that one job holds them all.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import collectives as cl
from collectives.environment import ATTEMPT

VICTIM = 1
LARGE = 1 << 20  # elements: many tiles, so that a signal comes in the middle

Work = Callable[[cl.Communicator], Any]


def kill(comm: cl.Communicator) -> None:
    """Die at once, as by the kernel's memory killer."""
    comm.barrier()
    _note_time(comm)
    os.kill(os.getpid(), signal.SIGKILL)


def kill_inside(comm: cl.Communicator) -> None:
    """Die at any place of a large call."""
    comm.barrier()

    def die() -> None:
        _note_time(comm)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Timer(0.05, die).start()
    x = np.ones(LARGE, np.float32)
    while True:
        comm.allreduce(x, op="max")


def leave(comm: cl.Communicator) -> None:
    """Close instead of making the call."""
    comm.barrier()
    _note_time(comm)
    comm.close()


def abort(comm: cl.Communicator) -> None:
    """Give up for all."""
    comm.barrier()
    _note_time(comm)
    comm.abort("no disk left")


def stop(comm: cl.Communicator) -> None:
    """Stay alive and make no call, until another rank has written what it was told."""
    comm.barrier()
    _note_time(comm)
    _wait_for(f"0.{os.environ[ATTEMPT]}.json")


def interrupt(comm: cl.Communicator) -> Any:
    """Get a Ctrl-C in a call that the others do not join."""
    comm.barrier()

    def press() -> None:
        _note_time(comm)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.1, press).start()
    try:
        comm.broadcast(np.ones(3), root=0)
    except KeyboardInterrupt:
        return {"error": "KeyboardInterrupt", "time": time.monotonic()}
    return {"error": None}


def call(comm: cl.Communicator, **options: Any) -> Any:
    """Be another rank: make calls until one fails, and tell how."""
    x = np.ones(LARGE, np.float32)
    try:
        comm.barrier()  # the victim may be out of it, and gone, before this rank is
        while True:
            comm.allreduce(x, op="max", **options)
    except cl.CollectiveError as error:
        told = {"error": type(error).__name__, "text": str(error), "rank": error.rank}
        return told | {"time": time.monotonic()}


def call_with_timeout(comm: cl.Communicator) -> Any:
    """Be another rank, with little patience."""
    return call(comm, timeout=0.3)


def call_afterwards(comm: cl.Communicator) -> Any:
    """Be another rank, that makes the call when the victim has been interrupted in it."""
    comm.barrier()
    _wait_for(f"{VICTIM}.{os.environ[ATTEMPT]}.json")
    try:
        comm.broadcast(np.ones(3), root=0)
    except cl.CollectiveError as error:
        return {"error": type(error).__name__, "text": str(error)}
    return {"error": None}


def sparse(n: int = LARGE // 16) -> cl.Sparse:
    """Return a vector with so many elements at random places."""
    rng = np.random.default_rng(os.getpid())
    return cl.Sparse(rng.integers(0, 16 * n, n, np.int32), np.ones(n, np.float32), 16 * n)


def sum_sparse(
    comm: cl.Communicator, begin: Callable[[], Any] = lambda: None, **options: Any
) -> Any:
    """Sum large sparse vectors until a call fails, and tell how it and the next one did."""
    x, told = sparse(), dict[str, Any]()
    try:
        comm.barrier()
        begin()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            comm.allreduce(x, algorithm="ssar_split_allgather", **options)
    except cl.CollectiveError as error:
        told |= {"error": type(error).__name__, "text": str(error)}
        told |= {"rank": error.rank, "time": time.monotonic()}
    try:
        comm.allreduce(x)
    except cl.CollectiveError as error:
        told["again"] = str(error)
    return told


def sum_sparse_and_go_on(comm: cl.Communicator) -> Any:
    """Do so, then sum once more among those that are left."""
    told = sum_sparse(comm)
    with comm.shrink() as rest:
        x = cl.Sparse(np.array([rest.rank, 4]), np.ones(2), 5)
        told["left"] = rest.allreduce(x, output="dense").tolist()
    return told


def sum_sparse_with_timeout(comm: cl.Communicator) -> Any:
    """Do so with little patience."""
    return sum_sparse(comm, timeout=0.3)


def after(seconds: float, act: Callable[[cl.Communicator], None]) -> Work:
    """Make a victim to which something happens in the midst of a large sparse call."""

    def victim(comm: cl.Communicator) -> Any:
        def happen() -> None:
            _note_time(comm)
            act(comm)

        return sum_sparse(comm, threading.Timer(seconds, happen).start)

    return victim


def die(comm: cl.Communicator) -> None:
    """End at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def freeze(comm: cl.Communicator) -> None:
    """Stop this process until another rank has written what it was told, or for 5 s."""
    rank = 0 if comm.rank else VICTIM
    if os.fork() == 0:
        _wait_for(f"{rank}.{os.environ[ATTEMPT]}.json", 5)
        os.kill(os.getppid(), signal.SIGCONT)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGSTOP)


def interrupt_sparse(comm: cl.Communicator) -> Any:
    """Get a Ctrl-C in a sparse call in which rank 0 has stopped."""

    def press() -> None:
        _note_time(comm)
        os.kill(os.getpid(), signal.SIGINT)

    try:
        return sum_sparse(comm, threading.Timer(0.3, press).start)
    except KeyboardInterrupt:
        return {"error": "KeyboardInterrupt", "time": time.monotonic()}


def interrupt_alone(comm: cl.Communicator) -> Any:
    """Get a Ctrl-C while this rank sorts its indices, for which the others wait."""
    x = sparse(1 << 23)

    def press() -> None:
        _note_time(comm)
        os.kill(os.getpid(), signal.SIGINT)

    comm.barrier()
    threading.Timer(0.05, press).start()
    try:
        comm.allreduce(x, algorithm="ssar_split_allgather")
    except KeyboardInterrupt:
        return {"error": "KeyboardInterrupt", "time": time.monotonic()}
    return {"error": None}


def stop_on_rank_0(comm: cl.Communicator) -> Any:
    """Be another rank; on rank 0 one that stops in the midst of a call."""
    stops = threading.Timer(0.1, lambda: freeze(comm))
    return sum_sparse(comm, stops.start if comm.rank == 0 else lambda: None)


SCENARIOS: dict[str, tuple[Work, Work]] = {
    "kill": (kill, call),
    "kill inside": (kill_inside, call),
    "leave": (leave, call),
    "abort": (abort, call),
    "silence": (stop, call_with_timeout),
    "interrupt": (interrupt, call_afterwards),
    "kill in a sparse call": (after(0.05, die), sum_sparse_and_go_on),
    "silence in a sparse call": (after(0.05, freeze), sum_sparse_with_timeout),
    "abort in a sparse call": (after(0.05, lambda comm: comm.abort("no disk left")), sum_sparse),
    "interrupt in a sparse call": (interrupt_sparse, stop_on_rank_0),
    "interrupt at work alone": (interrupt_alone, sum_sparse),
}
TRIES = 3


def all_scenarios(folder: str) -> None:
    """Run each scenario three times."""
    os.environ["FAULTS_FOLDER"] = folder
    rank = int(os.environ["COLLECTIVES_RANK"])
    for number in range(len(SCENARIOS) * TRIES):
        victim, other = list(SCENARIOS.values())[number // TRIES]
        os.environ[ATTEMPT] = str(number)
        pid = os.fork()
        if pid == 0:
            _child(victim if rank == VICTIM else other, Path(folder, f"{rank}.{number}.json"))
        os.waitpid(pid, 0)


def _child(work: Work, result: Path) -> None:
    """Run a scenario, write what it found, and end without a word to the others."""
    try:
        found = work(cl.init(timeout=20))
    except BaseException as error:
        found = {"error": f"unexpected: {error!r}", "text": "", "time": 0.0, "rank": None}
    temporary = result.with_suffix(".new")
    temporary.write_text(json.dumps(found))
    temporary.rename(result)
    os._exit(0)


def _wait_for(name: str, seconds: float = 20) -> None:
    path = Path(os.environ["FAULTS_FOLDER"], name)
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.002)


def _note_time(comm: cl.Communicator) -> None:
    """Write down when the victim fails. The clock is the same for all processes."""
    note = Path(os.environ["FAULTS_FOLDER"], f"time.{os.environ[ATTEMPT]}")
    note.write_text(str(time.monotonic()))
