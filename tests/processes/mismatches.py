# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_mismatches` do: they do not agree."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import collectives as cl
from collectives.environment import ATTEMPT

Call = Callable[[cl.Communicator], Any]


def ones(n: int = 64, dtype: Any = np.float32) -> Any:
    return np.ones(n, dtype)


# What rank 1 calls, what the others call, and the words that name each of the two calls.
CASES: dict[str, tuple[Call, Call, tuple[str, str]]] = {
    "kind": (
        lambda c: c.allreduce(ones()),
        lambda c: c.broadcast(ones()),
        ("allreduce of 64 float32", "broadcast of 64 float32"),
    ),
    "kind, one way": (
        lambda c: c.broadcast(ones()),
        lambda c: c.reduce(ones()),
        ("broadcast of 64 float32", "reduce of 64 float32"),
    ),
    "barrier": (
        lambda c: c.barrier(),
        lambda c: c.allgather(ones()),
        ("barrier", "allgather of"),
    ),
    "op": (
        lambda c: c.allreduce(ones(), op="max"),
        lambda c: c.allreduce(ones(), op="sum"),
        ("max", "sum"),
    ),
    "op, one way": (
        lambda c: c.reduce(ones(), op="max"),
        lambda c: c.reduce(ones(), op="sum"),
        ("max", "sum"),
    ),
    "dtype of another size": (
        lambda c: c.allreduce(ones(dtype=np.float64)),
        lambda c: c.allreduce(ones()),
        ("64 float64", "64 float32"),
    ),
    "dtype of the same size": (
        lambda c: c.allreduce(ones(dtype=np.int32)),
        lambda c: c.allreduce(ones()),
        ("64 int32", "64 float32"),
    ),
    "count plus one": (
        lambda c: c.allreduce(ones(65)),
        lambda c: c.allreduce(ones()),
        ("65 float32", "64 float32"),
    ),
    "count none": (
        lambda c: c.allreduce(ones(0)),
        lambda c: c.allreduce(ones()),
        ("of 0 float32", "of 64 float32"),
    ),
    "count far more": (
        lambda c: c.allreduce(ones(10_000_000)),
        lambda c: c.allreduce(ones()),
        ("10000000 float32", "64 float32"),
    ),
    "count of a gather": (
        lambda c: c.allgather(ones(3)),
        lambda c: c.allgather(ones(4)),
        ("allgather of", "allgather of"),
    ),
    "parts": (
        lambda c: c.allgatherv(ones(2), [1, 2, 3][: c.size]),
        lambda c: c.allgatherv(ones(2), [2, 3, 2][: c.size]),
        ("allgather", "allgather"),
    ),
    "parts, told by some only": (
        lambda c: c.gatherv(ones(2), [2] * c.size),
        lambda c: c.gatherv(ones(2)),
        ("gather of", "allgather of"),
    ),
    "parts of a scatter": (
        lambda c: c.scatter(None, ones(3)),
        lambda c: c.scatter(ones(2 * c.size) if c.rank == 0 else ones(2)),
        ("scatter of", "scatter of"),
    ),
    "gather and scatter": (
        lambda c: c.scatter(ones(2)),
        lambda c: c.gather(ones(2)),
        ("scatter of", "gather of"),
    ),
    "block of an exchange": (
        lambda c: c.alltoall(ones(c.size)),
        lambda c: c.alltoall(ones(2 * c.size)),
        ("alltoall of", "alltoall of"),
    ),
    "table of an exchange": (
        lambda c: c.alltoallv(ones(c.size), [[1] * c.size] * c.size),
        lambda c: c.alltoallv(ones(2 * c.size), [[2] * c.size] * c.size),
        ("alltoall of", "alltoall of"),
    ),
    "op of a scan": (
        lambda c: c.scan(ones(), op="max"),
        lambda c: c.scan(ones(), op="min"),
        ("scan of 64 float32 (max", "scan of 64 float32 (min"),
    ),
    "scan and exscan": (
        lambda c: c.exscan(ones()),
        lambda c: c.scan(ones()),
        ("exscan of 64", "calls scan of 64"),
    ),
    "root of a gather": (
        lambda c: c.gather(ones(), root=1),
        lambda c: c.gather(ones(), root=0),
        ("root 1", "root 0"),
    ),
    "root": (
        lambda c: c.broadcast(ones(), root=1),
        lambda c: c.broadcast(ones(), root=0),
        ("root 1", "root 0"),
    ),
    "algorithm": (
        lambda c: c.allreduce(ones(), algorithm="ring"),
        lambda c: c.allreduce(ones(), algorithm="circulant"),
        ("ring", "circulant"),
    ),
    "order of two calls": (
        lambda c: (c.allreduce(ones()), c.barrier()),
        lambda c: (c.barrier(), c.allreduce(ones())),
        ("allreduce of 64", "barrier"),
    ),
}


def disagree() -> dict[str, Any]:
    """Run all cases, each in an attempt of its own; return what this rank was told."""
    told = {}
    for attempt, (name, (mine, theirs, _)) in enumerate(CASES.items(), 1):
        os.environ[ATTEMPT] = str(attempt)
        comm = cl.init(timeout=20)
        begin = time.monotonic()
        told[name] = _told(comm, mine if comm.rank == 1 else theirs)
        told[name]["seconds"] = time.monotonic() - begin
        told[name]["again"] = _told(comm, lambda c: c.barrier())
        comm.close()
    return told


def _told(comm: cl.Communicator, call: Call) -> dict[str, Any]:
    """Make a call that may return before it can know, then one that cannot."""
    try:
        call(comm)
        comm.barrier()
    except cl.CollectiveError as error:
        return {"error": type(error).__name__, "text": str(error), "rank": error.rank}
    return {"error": None, "text": "", "rank": None}
