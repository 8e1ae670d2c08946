# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_nccl_mixed` do: NCCL within hosts, ours between them.

GPUs, NCCL and hosts are made up, as in :mod:`tests.processes.nccl_choice`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import collectives as cl
from collectives import nccl
from collectives.errors import CollectiveError
from collectives.rivals import rival, standing
from tests.processes.gpu import differing, on, seen
from tests.processes.nccl_choice import N, begin, patch, raising, refusal, sums, times, way

LENGTHS = (0, 1, 2, 3, 1003, 70_001)
DTYPES = ("i4", "f4", "f8")


def on_hosts(host_of: Callable[[int], int] = lambda rank: rank // 2) -> tuple[cl.Communicator, int]:
    """Return a communicator whose ranks take these hosts for theirs."""
    comm, rank = begin()
    patch(standing, "this_host", lambda: bytes([host_of(rank)]) * 16)
    return comm, rank


def everything() -> dict[str, Any]:
    """All that two levels can do, of many lengths, in place and not; wrong ones, and the ways."""
    comm, _ = on_hosts()
    wrong: list[str] = []
    ways = set()
    for n, dtype in product(LENGTHS, DTYPES):
        for kind in (_allreduce, _allgather, _reduce_scatter):
            wrong += kind(comm, n, dtype)
            ways.add(way(comm))
        for root in range(comm.size):
            wrong += _broadcast(comm, n, dtype, root) + _reduce(comm, n, dtype, root)
            ways.add(way(comm))
    flags = on(np.full(5, comm.rank == 1, bool))
    comm.broadcast(flags, root=1, algorithm="mixed")
    wrong += differing(seen(flags), np.ones(5, bool), "broadcast of bool")
    comm.close()
    return {"wrong": wrong, "ways": sorted(ways)}


def uneven(layout: str) -> dict[str, Any]:
    """What hosts with different numbers of ranks can do."""
    comm, _ = on_hosts(lambda rank: int(layout[rank]))
    wrong: list[str] = []
    for n in (0, 1, 3, 1003):
        wrong += _allreduce(comm, n, "f4")
        for root in range(comm.size):
            wrong += _broadcast(comm, n, "f4", root) + _reduce(comm, n, "f4", root)
    told = way(comm)
    comm.close()
    return {"wrong": wrong, "way": told}


def _given(comm: cl.Communicator, n: int, dtype: str) -> list[Any]:
    return [np.arange(n, dtype=dtype) % 97 + rank for rank in range(comm.size)]


def _allreduce(comm: cl.Communicator, n: int, dtype: str) -> list[str]:
    given = _given(comm, n, dtype)
    x, out, total = on(given[comm.rank]), on(np.zeros(n, dtype)), np.sum(given, axis=0)
    comm.allreduce(x, out, algorithm="mixed")
    wrong = differing(seen(x), given[comm.rank], f"x of allreduce of {n} {dtype}")
    comm.allreduce(x, algorithm="mixed")
    for result in (out, x):
        wrong += differing(seen(result), total, f"allreduce of {n} {dtype}")
    return wrong


def _allgather(comm: cl.Communicator, n: int, dtype: str) -> list[str]:
    given = _given(comm, n, dtype)
    whole = on(np.zeros(n * comm.size, dtype))
    comm.allgather(on(given[comm.rank]), whole, algorithm="mixed")
    return differing(seen(whole), np.concatenate(given), f"allgather of {n} {dtype}")


def _reduce_scatter(comm: cl.Communicator, n: int, dtype: str) -> list[str]:
    given = _given(comm, n * comm.size, dtype)
    out = on(np.zeros(n, dtype))
    comm.reduce_scatter(on(given[comm.rank]), out, algorithm="mixed")
    expected = np.sum(given, axis=0).reshape(comm.size, n)[comm.rank]
    return differing(seen(out), expected, f"reduce_scatter of {n} {dtype}")


def _broadcast(comm: cl.Communicator, n: int, dtype: str, root: int) -> list[str]:
    given = _given(comm, n, dtype)
    x = on(given[comm.rank])
    comm.broadcast(x, root=root, algorithm="mixed")
    return differing(seen(x), given[root], f"broadcast of {n} {dtype} from {root}")


def _reduce(comm: cl.Communicator, n: int, dtype: str, root: int) -> list[str]:
    given = _given(comm, n, dtype)
    x = on(given[comm.rank])
    comm.reduce(x, root=root, algorithm="mixed")
    expected = np.sum(given, axis=0) if comm.rank == root else given[comm.rank]
    return differing(seen(x), expected, f"reduce of {n} {dtype} to {root}")


def chosen() -> dict[str, Any]:
    """It is the fastest: calls go by it, on every stream; min of integers, too."""
    comm, rank = on_hosts()
    times(3e-3, 2e-3, 1e-3)
    wrong = sums(comm)
    ways = [way(comm)]
    x = on(np.full(6, rank, "i4"))
    comm.allreduce(x, op="max")
    wrong += differing(seen(x), np.full(6, comm.size - 1), "max")
    ways.append(way(comm))
    comm.alltoall(on(np.zeros(comm.size, "i4")), on(np.zeros(comm.size, "i4")))
    ways.append(way(comm))
    text = str(comm.explain("allreduce", 4 * N, device="cuda"))
    last = str(comm.allreduce(x) is x and comm.last)
    comm.close()
    return {"wrong": wrong, "ways": ways, "text": text, "last": last}


def two_versions() -> dict[str, Any]:
    """The hosts have NCCLs of different versions: within each there is one."""
    comm, rank = on_hosts()
    times(2e-3, 1e-3, 1e-3)
    if rank >= 2:
        library = nccl.load()
        library.version = library.version._replace(minor=27)
    wrong = sums(comm)
    return {
        "wrong": wrong,
        "way": way(comm),
        "nccl": refusal(lambda: sums(comm, algorithm="nccl")),
        "text": str(comm.explain("allreduce", 4 * N, device="cuda")),
    }


def flat(layout: str) -> list[Any]:
    """The ranks lie so that there are no two levels, or not for all collectives."""
    comm, _ = on_hosts(lambda rank: int(layout[rank]))
    whole = on(np.zeros(comm.size, "f4"))
    return [
        refusal(lambda: sums(comm, algorithm="mixed")),
        refusal(lambda: comm.allgather(on(np.zeros(1, "f4")), whole, algorithm="mixed")),
        refusal(lambda: comm.alltoall(whole, algorithm="mixed")),
        *sums(comm),
    ]


def captured() -> list[str]:
    """What is captured into a graph cannot go by it."""
    comm, _ = on_hosts()
    wrong = sums(comm, algorithm="mixed")
    patch(rival, "is_captured", lambda place: True)
    said = refusal(lambda: sums(comm, algorithm="mixed"))
    return [*wrong, *sums(comm), way(comm), said]


def fail(function: str) -> None:
    """Let a function of NCCL fail on this rank."""
    finish = nccl.Communicator.finish

    def failing(self: Any, called: str, *arguments: Any, kept: Any = ()) -> None:
        if called == function:
            raise nccl.load().error(function, 2)
        finish(self, called, *arguments, kept=kept)

    patch(nccl.Communicator, "finish", failing)


def in_trial() -> dict[str, Any]:
    """It fails in the trial on one rank: NCCL among all is raced without it."""
    comm, rank = on_hosts()
    times(2e-3, 1e-3, 0.5e-3)
    if rank == 1:
        fail("ncclReduceScatter")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrong = sums(comm, timeout=1.0)  # for what waits for that rank
    said = [str(one.message) for one in caught]
    ways = [way(comm)]
    wanted = refusal(lambda: sums(comm, algorithm="mixed"))
    return {"wrong": wrong, "said": said, "ways": ways, "wanted": wanted}


def no_columns() -> dict[str, Any]:
    """The ranks of the same number on all hosts cannot form a group: it goes on without."""
    comm, _ = on_hosts()
    times(2e-3, 1e-3, 0.5e-3)
    patch(type(comm), "_form", raising("there is no memory"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrong = sums(comm) + sums(comm)
    assert comm._nccl is not None
    left = comm._nccl._ways["mixed"].made
    return {
        "wrong": wrong,
        "way": way(comm),
        "left": left,
        "said": [str(w.message) for w in caught],
    }


def breaking(function: str) -> dict[str, Any]:
    """A stage fails on one rank in a call of the program: all are told, in the time of the call."""
    comm, rank = on_hosts()
    wrong = sums(comm, algorithm="mixed")
    if rank == 3:
        fail(function)
    begin_s = time.monotonic()
    said = []
    for _ in range(2):
        try:
            comm.allreduce(on(np.ones(N, "f4")), algorithm="mixed", timeout=1.0)
            said.append("done")
        except CollectiveError as error:
            said.append(type(error).__name__)
    seconds = time.monotonic() - begin_s
    comm.close()
    return {"wrong": wrong, "said": said, "seconds": seconds}


def by_variable() -> list[Any]:
    """COLLECTIVES_ALGORITHM wishes for it."""
    comm, _ = on_hosts()
    wrong = sums(comm)
    return [*wrong, way(comm), str(comm.explain("allreduce", device="cuda"))]


def lost() -> list[Any]:
    """A communicator that is lost takes its columns with it, without a word."""
    comm, _ = on_hosts()
    other = comm.dup()
    wrong: list[Any] = sums(other, algorithm="mixed")
    assert other._nccl is not None
    mixed: Any = other._nccl._ways["mixed"]
    column = mixed._column
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del other
    comm.barrier()
    return [*wrong, column.closed, mixed.made, len(caught)]
