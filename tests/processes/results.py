# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_results` do."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import collectives as cl
from tests import sweep

BOUND = (4, 5)  # so many ranks are bound to a core each, which they share on a small machine


def everything(share: str) -> dict[str, list[str]]:
    """Check every collective in every way; return what was wrong, by kind of check.

    ``share``: that of :func:`tests.sweep.algorithms`; above 1, dtypes take turns, too, as
    :mod:`tests.python.test_threads` has all.
    """
    if int(os.environ["COLLECTIVES_SIZE"]) in BOUND:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ["COLLECTIVES_RANK"]) % len(cores)]})
    comm = cl.init(timeout=30)
    checks = (sweep.places, sweep.parts, sweep.shapes)
    found = {check.__name__: check(comm) for check in checks}
    found["dtypes"] = sweep.dtypes(comm, 4 if int(share) > 1 else 1)
    found["algorithms"] = sweep.algorithms(comm, (None, "staged", "inline"), int(share))
    found["local errors"] = local_errors(comm)
    found["lengths"] = lengths(comm)
    found["drop-in"] = [] if cl.allreduce(np.ones(1)).tolist() == [comm.size] else ["wrong"]
    return found


def local_errors(comm: cl.Communicator) -> list[str]:
    """Wrong calls of one rank alone do not disturb the calls of all."""
    wrong = []
    for x, words in (
        (np.ones(3, object), "object"),
        ([1.0], "list"),
        (np.ones(3, np.int32), "avg"),
    ):
        if comm.rank == comm.size - 1:
            try:
                comm.allreduce(x, op="avg")
                wrong.append(f"{words}: not refused")
            except cl.InvalidArgumentError as error:
                wrong += [] if words in str(error) else [str(error)]
        total = comm.allreduce(np.array([comm.rank]))[0]
        wrong += [] if total == sum(range(comm.size)) else [f"after {words}: {total}"]
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: comm.gatherv(np.ones(3), [2] * comm.size), "x has shape (3,)"),
        (lambda: comm.alltoallv(np.ones(3), [2] * comm.size), "the sum of send_counts"),
        (lambda: comm.scatter(None, root=comm.size), f"root is {comm.size}"),
        (lambda: comm.scan(np.ones(3), op="avg"), "avg is not defined"),
    ]
    for call, words in calls:
        if comm.rank == comm.size - 1:
            try:
                call()
                wrong.append(f"{words}: not refused")
            except cl.InvalidArgumentError as error:
                wrong += [] if words in str(error) else [str(error)]
        total = comm.scan(np.array([1]))[0]
        wrong += [] if total == comm.rank + 1 else [f"after {words}: {total}"]
    comm.barrier()
    return wrong


def lengths(comm: cl.Communicator) -> list[str]:
    """Lengths that contradict each other are told to all ranks alike, and harm nobody."""
    p, last = comm.size, comm.size - 1
    wrong = []
    for _ in range(3):
        expected = [1] * p
        expected[0] += comm.rank == last
        try:
            comm.alltoallv(np.arange(p), [1] * p, expected)
            wrong.append("not refused")
        except cl.MismatchError as error:
            named = f"rank {last} expects 2 from rank 0 (recv_counts[0])" in str(error)
            wrong += [] if named and error.rank == last else [str(error)]
        got = comm.alltoallv(np.arange(p), [1] * p).tolist()
        wrong += [] if got == [comm.rank] * p else [f"afterwards: {got}"]
    return wrong
