# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_results` do."""

from __future__ import annotations

import numpy as np

import collectives as cl
from tests import sweep


def everything() -> dict[str, list[str]]:
    """Check every collective in every way; return what was wrong, by kind of check."""
    comm = cl.init(timeout=30)
    checks = (sweep.dtypes, sweep.places, sweep.parts, sweep.shapes)
    found = {check.__name__: check(comm) for check in checks}
    found["algorithms"] = sweep.algorithms(comm, (None, "staged", "inline"))
    found["local errors"] = local_errors(comm)
    found["drop-in"] = [] if cl.allreduce(np.ones(1)).tolist() == [comm.size] else ["wrong"]
    return found


def local_errors(comm: cl.Communicator) -> list[str]:
    """Wrong calls of one rank alone do not disturb the calls of all."""
    wrong = []
    for x, words in (
        (np.ones(3, np.float16), "float16"),
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
    if comm.size > 1:
        for mode in ("pull", "push"):
            try:
                comm.allreduce(np.ones(2), mode=mode)
                wrong.append(f"mode {mode} among processes: not refused")
            except cl.UnsupportedError:
                continue
    comm.barrier()
    return wrong
