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


def sparse(n: int = 64, dtype: Any = np.float32) -> cl.Sparse:
    return cl.Sparse(np.array([3, 1]), ones(2, dtype), n)


def folded(c: cl.Communicator, name: str, commutative: bool = True) -> Any:
    """Reduce with an operation of the program: on all ranks its first one."""
    return c.allreduce(ones(), op=cl.op(np.add, commutative=commutative, name=name))


def folded_later(c: cl.Communicator, name: str) -> Any:
    """Reduce with an operation that is made after others."""
    spares = [cl.op(np.maximum, commutative=True) for _ in range(3)]
    done = folded(c, name)
    del spares
    return done


def exchange(b: cl.ScheduleBuilder) -> None:
    """Every rank sends all it has to every other; with two chunks in another order."""
    others = [r for r in range(b.p) if r != b.rank]
    b.send(0, others, b.all)
    b.recv_reduce(0, [*range(b.rank), cl.SELF, *range(b.rank + 1, b.p)], b.all)


def own(c: cl.Communicator, name: str, chunks: int = 1) -> Any:
    """Reduce with an algorithm of the program."""
    cl.algorithm("allreduce", name=name, chunks=chunks)(exchange)
    return c.allreduce(ones(), algorithm=name)


def together(c: cl.Communicator, *lengths: int) -> None:
    """Reduce arrays of these lengths in a group."""
    with c.group():
        for n in lengths:
            c.allreduce(ones(n))


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
        ("allgather of 3 float32 per rank", "allgather of 4 float32 per rank"),
    ),
    "parts": (
        lambda c: c.allgatherv(ones(2), [1, 2, 3, 4][: c.size]),
        lambda c: c.allgatherv(ones([2, 1, 3, 4][c.rank]), [2, 1, 3, 4][: c.size]),
        ("allgather of", ", with other counts per rank"),
    ),
    "parts, told by some only": (
        lambda c: c.gatherv(ones(2), [2] * c.size),
        lambda c: c.gatherv(ones(2)),
        ("gather of", " int64 per rank"),
    ),
    "parts of a scatter": (
        lambda c: c.scatter(None, ones(3)),
        lambda c: c.scatter(ones(2 * c.size) if c.rank == 0 else ones(2)),
        ("scatter of 3 float32 per rank (root 0,", "scatter of 2 float32 per rank (root 0,"),
    ),
    "gather and scatter": (
        lambda c: c.scatter(ones(2)),
        lambda c: c.gather(ones(2)),
        ("scatter of 2 float32 per rank", "gather of 2 float32 per rank"),
    ),
    "block of an exchange": (
        lambda c: c.alltoall(ones(c.size)),
        lambda c: c.alltoall(ones(6 * c.size)),
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
    "reproducible": (
        lambda c: c.allreduce(ones(), reproducible=True),
        lambda c: c.allreduce(ones()),
        ("(sum, reproducible, ", "(sum, direct"),
    ),
    "how reproducible": (
        lambda c: c.allreduce(ones(), reproducible=True),
        lambda c: c.allreduce(ones(), reproducible="any_p"),
        ("(sum, reproducible, ", "(sum, reproducible for any p, "),
    ),
    "name of an operation": (
        lambda c: folded(c, "larger"),
        lambda c: folded(c, "plus"),
        ("(operation larger, ", "(operation plus, "),
    ),
    "an operation that does not commute": (
        lambda c: folded(c, "plus", commutative=False),
        lambda c: folded(c, "plus"),
        ("(operation plus, not commutative, ", "(operation plus, "),
    ),
    "an operation of the program": (
        lambda c: folded(c, "sum"),
        lambda c: c.allreduce(ones()),
        ("(operation sum, ", "(sum, "),
    ),
    "number of an operation": (
        lambda c: folded(c, "same"),
        lambda c: folded_later(c, "same"),
        ("operation same", ", whose operations are numbers"),
    ),
    "name of an own algorithm": (
        lambda c: own(c, "one"),
        lambda c: own(c, "other"),
        ("own algorithm one", "own algorithm other"),
    ),
    "schedule of an own algorithm": (
        lambda c: own(c, "mine", 1),
        lambda c: own(c, "mine", 2),
        ("own algorithm mine", ", whose schedules differ"),
    ),
    "lengths of a group": (
        lambda c: together(c, 3, 5),
        lambda c: together(c, 5, 3),
        ("for arrays of 3, 5", "for arrays of 5, 3"),
    ),
    "lengths of a large group": (
        lambda c: together(c, *[3] * 40, 1, 2),
        lambda c: together(c, *[3] * 40, 2, 1),
        ("for arrays of 3, 3", ", which differ further on"),
    ),
    "a group on one rank": (
        lambda c: together(c, 3, 5),
        lambda c: c.allreduce(ones(8)),
        ("for arrays of 3, 5", "of 8 float32 (sum,"),
    ),
    "order of keys": (
        lambda c: c.allreduce({"w": ones(3), "b": ones(3)}),
        lambda c: c.allreduce({"b": ones(3), "w": ones(3)}),
        ("for x['w'] of 3, x['b'] of 3", "for x['b'] of 3, x['w'] of 3"),
    ),
    "keys": (
        lambda c: c.broadcast({"w": [ones(3)]}),
        lambda c: c.broadcast({"b": ones(3)}),
        ("for x['w'][0]", "for x['b']"),
    ),
    "sparse and dense": (
        lambda c: c.allreduce(sparse()),
        lambda c: c.allreduce(ones()),
        ("calls sparse allreduce of 64 float32 (sum, auto)", "calls allreduce of 64 float32 (sum"),
    ),
    "sparse, as dense, and dense": (
        lambda c: c.allreduce(sparse(), algorithm="dense"),
        lambda c: c.allreduce(ones()),
        ("sparse allreduce of 64 float32 (sum, dense)", "calls allreduce of 64 float32 (sum"),
    ),
    "kind of a sparse call": (
        lambda c: c.allgather(sparse()),
        lambda c: c.allreduce(sparse()),
        ("sparse allgather of 64 float32", "sparse allreduce of 64 float32"),
    ),
    "sparse and forming a group": (
        lambda c: c.broadcast(sparse()),
        lambda c: c.dup(),
        ("sparse broadcast of 64 float32 (root 0, auto)", "calls dup"),
    ),
    "length of a sparse vector": (
        lambda c: c.allreduce(sparse(65)),
        lambda c: c.allreduce(sparse()),
        ("sparse allreduce of 65 float32", "sparse allreduce of 64 float32"),
    ),
    "dtype of a sparse vector": (
        lambda c: c.allreduce(sparse(dtype=np.int32)),
        lambda c: c.allreduce(sparse()),
        ("sparse allreduce of 64 int32", "sparse allreduce of 64 float32"),
    ),
    "op of a sparse call": (
        lambda c: c.allreduce(sparse(), op="avg"),
        lambda c: c.allreduce(sparse()),
        ("64 float32 (avg, auto)", "64 float32 (sum, auto)"),
    ),
    "root of a sparse call": (
        lambda c: c.broadcast(sparse(), 1),
        lambda c: c.broadcast(sparse(), 0),
        ("64 float32 (root 1, auto)", "64 float32 (root 0, auto)"),
    ),
    "algorithm of a sparse call": (
        lambda c: c.allreduce(sparse(), algorithm="ring"),
        lambda c: c.allreduce(sparse(), algorithm="circulant"),
        ("64 float32 (sum, ring)", "64 float32 (sum, circulant)"),
    ),
    "output of a sparse call": (
        lambda c: c.allreduce(sparse(), output="dense"),
        lambda c: c.allreduce(sparse(), output="sparse"),
        ("(sum, auto, to dense)", "(sum, auto, to sparse)"),
    ),
    "threshold of a sparse call": (
        lambda c: c.allreduce(sparse(), dense_above=1e-9),
        lambda c: c.allreduce(sparse(), dense_above=2e-9),
        ("(sum, auto, dense above 1e-09)", "(sum, auto, dense above 2e-09)"),
    ),
    "a sparse call in a structure": (
        lambda c: c.allreduce({"w": sparse()}),
        lambda c: c.allreduce({"b": sparse()}),
        ("(sum, auto) for x['w']", "(sum, auto) for x['b']"),
    ),
    "order of a sparse and another call": (
        lambda c: (c.allreduce(sparse()), c.barrier()),
        lambda c: (c.barrier(), c.allreduce(sparse())),
        ("sparse allreduce of 64", "barrier"),
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
