# SPDX-License-Identifier: Apache-2.0
"""Ranks that are children of multiprocessing: the others are told how one of them has ended."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from multiprocessing.queues import Queue
from typing import Any

import pytest

import collectives as cl
from collectives.environment import JOB, RANK, SIZE
from tests.shares import few

pytestmark = pytest.mark.processes

ENDS = {
    "raise in a group": "AbortedError: rank 1 aborted: its program ended by ValueError: no such",
    "raise": "AbortedError: rank 1 aborted: its program ended by ValueError: no such file",
    "exit": "AbortedError: rank 1 aborted: its program ended by SystemExit: 3",
    "return": "rank 1 .* closed its communicator after its call #1",
    "exit well": "rank 1 .* closed its communicator after its call #1",
}


def live(rank: int, end: str, job: str, told: Queue[str]) -> None:
    """Be one of two ranks; 1 ends in the given way while 0 waits for it."""
    os.environ.update({RANK: str(rank), SIZE: "2", JOB: job})
    comm = cl.init(timeout=30)
    if end.endswith("in a group"):
        comm = comm.dup().dup()
    comm.barrier()
    if rank == 1:
        if end.startswith("raise"):
            raise ValueError("no such file")
        if end.startswith("exit"):
            sys.exit(3 if end == "exit" else 0)
        return
    try:
        comm.barrier()
    except cl.CollectiveError as error:
        told.put(f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("end", ENDS)
@few("method", ["fork", "spawn", "forkserver"], ["fork", "spawn"])
def test_how_a_child_ends_is_told(method: str, end: str) -> None:
    context: Any = multiprocessing.get_context(method)
    told: Queue[str] = context.Queue()
    job = f"children.{os.getpid()}.{method}.{end.replace(' ', '.')}"
    ranks = [context.Process(target=live, args=(rank, end, job, told)) for rank in range(2)]
    for process in ranks:
        process.start()
    try:
        text = told.get(timeout=60)
        for process in ranks:
            process.join(60)
    finally:
        for process in ranks:
            process.kill()
    assert re.search(ENDS[end], text), text
    assert ranks[0].exitcode == 0
