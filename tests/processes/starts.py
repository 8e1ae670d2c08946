# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_starts` do: they meet, or do not, and part."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

import collectives as cl
from collectives.environment import ATTEMPT, RANK


def total() -> float:
    """Meet and add up."""
    return float(cl.allreduce(np.ones(1))[0])


def again() -> list[float]:
    """Meet, part and meet again in the same job."""
    totals = []
    for _ in range(5):
        with cl.init(timeout=20) as comm:
            totals.append(float(comm.allreduce(np.ones(1))[0]))
    return totals


def threads_meet() -> list[float]:
    """Meet on a thread that ends; go on with another one."""
    made: list[cl.Communicator] = []
    maker = threading.Thread(target=lambda: made.append(cl.init(timeout=20)))
    maker.start()
    maker.join()
    return [float(made[0].allreduce(np.ones(1))[0]) for _ in range(3)]


def raise_error() -> None:
    """Rank 1's program has a bug."""
    comm = cl.init(timeout=20)
    if comm.rank == 1:
        raise ValueError("learning rate is nan")
    cl.barrier()


def end_early() -> dict[str, Any]:
    """Rank 1's program ends well, but too soon."""
    comm = cl.init(timeout=20)
    if comm.rank == 1:
        return {}
    try:
        comm.barrier()
    except cl.PeerLostError as error:
        return {"text": str(error), "rank": error.rank}
    return {}


def wait_in_vain() -> dict[str, Any]:
    """Be rank 0 of a job of two of which the other does not come."""
    begin = time.monotonic()
    try:
        cl.init()
    except cl.CollectiveError as error:
        seconds = time.monotonic() - begin
        return {"error": type(error).__name__, "text": str(error), "seconds": seconds}
    return {}


def interrupted_meeting() -> float:
    """Press Ctrl-C while others are waited for; return how long it took, best of three."""
    best = 60.0
    for _ in range(3):  # nothing is left of the one before
        pressed: list[float] = []

        def press(times: list[float] = pressed) -> None:
            times.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.1, press).start()
        try:
            cl.init(timeout=20)
        except KeyboardInterrupt:
            best = min(best, time.monotonic() - pressed[0])
    return best


def late_comer() -> str:
    """Rank 1 comes with the number of an older attempt."""
    late = os.environ[RANK] == "1"
    if late:
        os.environ[ATTEMPT] = "0"
    try:
        cl.init(timeout=20 if late else 2)  # only rank 0 waits in vain
    except cl.CollectiveError as error:
        return f"{type(error).__name__}: {error}"
    return "met"


def stopped() -> float:
    """Rank 1 is stopped for a while, which is not death."""
    comm = cl.init(timeout=20)
    pids = comm.allgather(np.array([os.getpid()]))
    if comm.rank == 0:
        os.kill(int(pids[1]), signal.SIGSTOP)
        threading.Timer(0.4, os.kill, (int(pids[1]), signal.SIGCONT)).start()
    return float(comm.allreduce(np.ones(1 << 18, np.float32))[0])


def until_killed() -> None:
    """Meet, work, and stay."""
    comm = cl.init(timeout=20)
    comm.allreduce(np.ones(1 << 20, np.float32))
    print(f"ready {os.getpid()}")
    sys.stdout.flush()
    comm.barrier()
    while True:
        comm.allreduce(np.ones(1 << 20, np.float32), op="max")
