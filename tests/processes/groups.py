# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_groups` do."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, cast

import numpy as np

import collectives as cl
from tests import groups
from tests.processes.jobs import until

VICTIM = 3


def everything() -> dict[str, list[str]]:
    """Check groups in every way; return what was wrong, by kind of check."""
    comm = cl.init(timeout=30)
    return {check.__name__: check(comm) for check in groups.ALL}


def total(comm: cl.Communicator) -> float:
    return float(comm.allreduce(np.ones(1))[0])


def held() -> dict[str, int]:
    """Count what this process has open and mapped of the job's memory."""
    maps = Path("/proc/self/maps").read_text()
    return {"descriptors": len(os.listdir("/proc/self/fd")), "maps": maps.count("memfd:")}


def loop() -> list[Any]:
    """Split a thousand times; return what was held before and after, by place in the loop."""
    comm = cl.init(timeout=30)
    comm.dup().close()
    before = held()
    for i in range(1000):
        group = cast(cl.Communicator, comm.split((comm.rank + i) % 2))
        if i % 100 == 0:
            with group.mesh((group.size,), ("all",)) as mesh:
                total(mesh["all"])
        group.close()
    comm.barrier()
    return [before, held()]


def orphans() -> list[float]:
    """Work on in groups whose parents, the default one too, are closed."""
    comm = cl.init(timeout=30)
    half = cast(cl.Communicator, comm.split(comm.rank // 2))
    comm.close()
    found = [total(half)]
    again = half.dup()
    half.close()
    found.append(total(again))
    second = cl.init(timeout=30)  # the same job meets again, beside what is left of the first
    return [*found, total(second), total(again), float(again.size)]


def death() -> Any:
    """Lose a rank; tell what each group that it was in says, and when."""
    comm = cl.init(timeout=20)
    odd = cast(cl.Communicator, comm.split(comm.rank % 2, -comm.rank))
    living = comm.subgroup([rank for rank in range(comm.size) if rank != VICTIM])
    comm.barrier()
    if comm.rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    start, told = time.monotonic(), []
    for group in (odd, comm):
        try:
            told.append(["sum", total(group), 0])
        except cl.CollectiveError as error:
            told.append([type(error).__name__, str(error), error.rank])
    took = time.monotonic() - start
    assert living is not None
    return {"told": told, "took": took, "living": total(living)}


def abort() -> list[Any]:
    """End a group; its parent and the other groups work on."""
    comm = cl.init(timeout=20)
    half = cast(cl.Communicator, comm.split(comm.rank // 2))
    if comm.rank == comm.size - 1:
        half.abort("no disk left")
    try:
        found: list[Any] = [total(half)]
    except cl.AbortedError as error:
        found = [str(error)]
    return [*found, total(comm), total(comm.dup())]


def interrupt(folder: str) -> list[str]:
    """Get a Ctrl-C in a split that the others join when it has come."""
    interrupted = Path(folder, "interrupted")
    comm = cl.init(timeout=20)
    comm.barrier()
    caught = "nothing"
    if comm.rank == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
    else:
        until(interrupted.exists)
    try:
        comm.split(0)
    except (KeyboardInterrupt, cl.CollectiveError) as error:
        caught = type(error).__name__
    interrupted.touch()
    return [caught, repr(comm)]


def of_pinned(places: str) -> list[str]:
    """Pin ranks to two cores, a digit each, and return who reduces 1 MiB: also in groups."""
    cores = sorted(os.sched_getaffinity(0))
    place = int(places[int(os.environ["COLLECTIVES_RANK"])])
    os.sched_setaffinity(0, {cores[place % len(cores)]})
    comm = cl.init(timeout=30)
    with comm.dup() as same, cast(cl.Communicator, comm.split(comm.rank // 3)) as part:
        return [one.explain("reduce", 1 << 20).choice.algorithm for one in (comm, same, part)]
