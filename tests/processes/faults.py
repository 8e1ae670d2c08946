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


SCENARIOS: dict[str, tuple[Work, Work]] = {
    "kill": (kill, call),
    "kill inside": (kill_inside, call),
    "leave": (leave, call),
    "abort": (abort, call),
    "silence": (stop, call_with_timeout),
    "interrupt": (interrupt, call_afterwards),
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


def _wait_for(name: str) -> None:
    path = Path(os.environ["FAULTS_FOLDER"], name)
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.002)


def _note_time(comm: cl.Communicator) -> None:
    """Write down when the victim fails. The clock is the same for all processes."""
    note = Path(os.environ["FAULTS_FOLDER"], f"time.{os.environ[ATTEMPT]}")
    note.write_text(str(time.monotonic()))
