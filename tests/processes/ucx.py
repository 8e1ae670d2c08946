# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_ucx` do."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import collectives as cl
from tests import sweep
from tests.hosts import values


def everything() -> dict[str, list[str]]:
    """Check all kinds of collectives in all ways to call them; return what was wrong."""
    before = caught()
    comm = cl.init(timeout=60)
    found = values.everything(comm)
    found["signals"] = [] if caught() == before else [f"caught: {before:x}, now {caught():x}"]
    found["large"] = large(comm)
    comm.close()
    return found


def whatever_else() -> list[str]:
    """Messages and topology(), groups, prepared calls, and what there is for one segment only."""
    comm = cl.init(timeout=60)
    ways = (values.messages, values.groups, values.persistent, values.unsupported)
    found = [wrong for way in ways for wrong in way(comm)]
    time.sleep(0.5)  # shrink() ends the calls of those that are not yet done with their last one
    with comm.shrink() as left:
        found += large(left)
    comm.close()
    return found


def caught() -> int:
    """Return the set of signals that have handlers, without those that the C library keeps."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return int(caught.split()[1], 16) & 0x7FFF_FFFF


def large(comm: cl.Communicator) -> list[str]:
    """Messages that are fetched by the receiver, of every kind."""
    found = []
    for kind in (*sweep.FOLDS, *sweep.SCANS, *sweep.MOVES):
        wrong = sweep.once(comm, kind, 700_001, root=comm.size - 1)
        found += [f"{kind}: {wrong}"] if wrong else []
    return found


def meet() -> bool:
    """Connect."""
    comm = cl.init(timeout=60)
    comm.barrier()
    comm.close()
    return True


def goes() -> str:
    """Connect; return how data goes."""
    comm = cl.init(timeout=60)
    comm.barrier()
    comm.close()
    return comm.transport


def some() -> list[str]:
    """Make a few calls of every size class."""
    comm = cl.init(timeout=60)
    found = [*large(comm), *values.in_a_row(comm)]
    comm.close()
    return found


def apart(name: str, *values: str) -> dict[str, Any]:
    """Each rank has another value of a variable; return what it is told, and after how long."""
    os.environ[name] = values[int(os.environ["COLLECTIVES_RANK"])]
    begin = time.monotonic()
    try:
        cl.init(timeout=20).allreduce(np.ones(4))
    except cl.CollectiveError as error:
        took = time.monotonic() - begin
        return {"kind": type(error).__name__, "text": str(error), "took": took}
    return {"kind": "none"}


def run_ahead() -> bool:
    """Rank 0 sends more than may be on its way, and leaves; the others listen later."""
    comm = cl.init(timeout=60)
    comm.barrier()
    if comm.rank > 0:
        time.sleep(1)
    sums = [float(comm.broadcast(np.full(n, n + comm.rank, np.float32))[0]) for n in range(1, 150)]
    comm.close()
    return sums == [float(n) for n in range(1, 150)]


def told() -> dict[str, Any]:
    """Rank 1 dies in the middle of calls; return what the others are told, and after how long."""
    comm = cl.init(timeout=60)
    x = np.ones(400_000)
    if comm.rank == 1:
        comm.allreduce(x)
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:  # from the first call on, which rank 1 may be done with before the others are
        while True:
            comm.allreduce(x)
    except cl.CollectiveError as error:
        took = time.monotonic() - begin
        return {"kind": type(error).__name__, "text": str(error), "took": took}


def late() -> dict[str, Any]:
    """Rank 1 does not come to a large call; return what the others are told, and how it went on."""
    comm = cl.init(timeout=2)
    comm.barrier()
    if comm.rank == 1:
        time.sleep(4)
    x = np.ones(400_000)
    try:
        comm.allreduce(x)
    except cl.CollectiveError as error:
        return {"kind": type(error).__name__, "text": str(error)}
    return {"kind": "none"}
