# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_symmetric` do."""

from __future__ import annotations

import itertools
import os
import resource
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import collectives as cl

Array = npt.NDArray[np.int64]
Check = Callable[[cl.Communicator, Callable[[int], Array], Callable[[int], Array], int, Any], bool]


@cache
def contributions(p: int, n: int) -> Array:
    """Return what the ranks hand in, by rank."""
    made = np.arange(n, dtype=np.int64) * (1 + np.arange(p))[:, None]
    made.flags.writeable = False
    return made


@cache
def totals(p: int, n: int) -> Array:
    """Return the sum of what the ranks hand in."""
    made: Array = contributions(p, n).sum(0)
    return made


def allreduce(comm: cl.Communicator, source: Any, target: Any, n: int, options: Any) -> bool:
    """Reduce into another array and in place."""
    given = contributions(comm.size, n)
    x, y = source(n), target(n)
    x[:], y[:] = given[comm.rank], -1
    comm.allreduce(x, y, **options)
    right = bool((y == totals(comm.size, n)).all() and (x == given[comm.rank]).all())
    comm.allreduce(x, **options)
    return right and bool((x == totals(comm.size, n)).all())


def reduce_scatter(comm: cl.Communicator, source: Any, target: Any, n: int, options: Any) -> bool:
    """Reduce, a part for each."""
    given, part = contributions(comm.size, n), n // comm.size
    x, y = source(n), target(part)
    x[:] = given[comm.rank]
    comm.reduce_scatter(x, y, **options)
    return bool((y == totals(comm.size, n)[comm.rank * part :][:part]).all())


def allgather(comm: cl.Communicator, source: Any, target: Any, n: int, options: Any) -> bool:
    """Join all."""
    given = contributions(comm.size, n)
    x, y = source(n), target(n * comm.size)
    x[:] = given[comm.rank]
    comm.allgather(x, y, **options)
    return bool((y.reshape(given.shape) == given).all())


def broadcast(comm: cl.Communicator, source: Any, _target: Any, n: int, options: Any) -> bool:
    """Give all the last rank's."""
    given = contributions(comm.size, n)
    x = source(n)
    x[:] = given[comm.rank]
    comm.broadcast(x, comm.size - 1, **options)
    return bool((x == given[-1]).all())


def reduce(comm: cl.Communicator, source: Any, target: Any, n: int, options: Any) -> bool:
    """Reduce to rank 0."""
    given = contributions(comm.size, n)
    x, y = source(n), target(n)
    x[:] = given[comm.rank]
    comm.reduce(x, y, root=0, **options)
    return comm.rank != 0 or bool((y == totals(comm.size, n)).all())


def alltoall(comm: cl.Communicator, source: Any, target: Any, n: int, options: Any) -> bool:
    """Exchange parts."""
    given, part = contributions(comm.size, n), n // comm.size
    x, y = source(n), target(n)
    x[:] = given[comm.rank]
    comm.alltoall(x, y, **options)
    return bool((y.reshape(comm.size, part) == given[:, comm.rank * part :][:, :part]).all())


KINDS: dict[str, Check] = {
    "allreduce": allreduce, "reduce_scatter": reduce_scatter, "allgather": allgather,
    "broadcast": broadcast, "reduce": reduce, "alltoall": alltoall,
}  # fmt: skip


def everything(share: str) -> list[str]:
    """Run every algorithm on arrays of which some ranks have some within reach; tell the wrong.

    ``share``: of long arrays so many mixtures take turns.
    """
    number = 0
    comm = cl.init(timeout=60)
    counts = (comm.size, 1000 * comm.size, 50000 * comm.size)

    def symmetric(n: int) -> Array:
        made: Array = comm.empty(n, np.int64)
        return made

    def ordinary(n: int) -> Array:
        return np.empty(n, np.int64)

    def makers(turn: int) -> tuple[Any, Any]:
        """All, none, and two in which neighbours differ."""
        odd = comm.rank % 2
        source, target = [(1, 1), (0, 0), (odd, 1 - odd), (1 - odd, 1)][turn]
        return symmetric if source else ordinary, symmetric if target else ordinary

    wrong = []
    for kind, check in KINDS.items():
        for algorithm in filter(lambda a: a.fits(comm.size), cl.algorithms(kind)):
            for mode, n, turn in itertools.product(("pull", "push"), counts, range(4)):
                number += n == counts[-1]
                if n == counts[-1] and number % int(share):
                    continue
                options = {"algorithm": algorithm.name, "mode": mode}
                if not check(comm, *makers(turn), n, options):
                    wrong.append(f"{kind} {algorithm.name} {mode}, n = {n}, turn {turn}")
    return wrong


def chosen() -> list[bool]:
    """Leave everything to the library, in a part of the ranks too, on arrays of any kind."""
    comm = cl.init(timeout=60)
    right = []
    half = comm.split(comm.rank % 2)
    assert half is not None
    for group, n in itertools.product((comm, half), 3 * (1, 10000, 1 << 20)):
        for dtype in ("float32", "bfloat16", np.float64):
            x = comm.empty(n, dtype) if (comm.rank + n) % 3 else np.empty(n, np.float32)
            if dtype != "float32" and x.dtype == np.float32:
                x = x.astype(comm.empty(1, dtype).dtype)
            x[...] = group.rank + 1
            group.allreduce(x)
            right.append(bool((x == group.size * (group.size + 1) / 2).all()))
    return right


def ran() -> list[list[str]]:
    """Sum arrays that all reach, in place; tell which modes ran, by length."""
    comm = cl.init(timeout=60)
    modes = []
    for n in (20_000, 5_000_000):
        x = comm.empty(n, np.float32)
        seen = []
        for turn in range(60):
            x[:] = comm.rank + turn
            comm.allreduce(x)
            assert (x == comm.size * turn + comm.size * (comm.size - 1) / 2).all()
            last = comm.last
            assert last is not None
            seen.append(last.mode)
        modes.append(sorted(set(seen[-50:])))  # behind those that take turns
    return modes


def begun_late() -> int:
    """Use such memory first on one rank, late, while that one runs ahead; return what is wrong."""
    comm = cl.init(timeout=60)
    n, wrong = 30000, 0
    reached, plain = comm.empty(n, np.int64), np.empty(n, np.int64)
    for root in range(comm.size):
        group = comm.dup()  # which knows of no such memory yet
        for turn in range(60):
            x = reached if group.rank == root and turn >= 20 else plain
            x[:] = turn if group.rank == root else -1
            if group.rank != root and turn % 7 == root:
                time.sleep(0.005)
            group.broadcast(x, root)
            wrong += int((x != turn).any())
    return wrong


def begun_while_another_is_far_ahead() -> int:
    """Use such memory first on a late rank, in a call that the other is through with."""
    comm = cl.init(timeout=20)
    part, wrong = 8192, 0
    late = comm.size - 1
    for _again in range(3):
        group = comm.dup()
        large = comm.empty(1 << 18, "float32")
        if group.rank == late:
            time.sleep(0.1)
        if group.rank == 0:
            group.scatter(np.zeros(group.size * part, "float32"))
        else:
            group.scatter(None, comm.empty(part, "float32"))
        for n in (2048, 2):
            for turn in range(3):  # as many calls as a rank may be ahead
                group.broadcast(np.full(n, turn, "float32"))
        for turn in range(6):
            large[:] = group.rank + turn
            group.allreduce(large)
            ranks = group.size * (group.size - 1) // 2
            wrong += int((large != ranks + group.size * turn).sum())
        group.barrier()
    return wrong


def beside_a_call_in_flight() -> bool:
    """Make arrays, and ask of them, while a helper thread makes a call."""
    comm = cl.init(timeout=20)
    x = np.ones(70000, np.float32)
    right = True
    for _ in range(400):
        handle = comm.allreduce(x, op="max", async_op=True)
        right = right and comm.is_symmetric(comm.empty(70000)) and not comm.is_symmetric(x)
        handle.wait()
    return right and bool((x == 1).all())


def without_room_to_map() -> str:
    """Reach for a peer's memory where a limit forbids to map it."""
    comm = cl.init(timeout=20)
    x = comm.empty(1 << 18) if comm.rank == 0 else np.empty(1 << 18, np.float32)
    if comm.rank == 1:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    try:
        for _ in range(12):
            x[:] = 1
            comm.allreduce(x)
    except cl.OutOfMemoryError as error:
        return str(error)
    return "no error"


def life() -> dict[str, Any]:
    """Make, use and drop arrays; what outlives what."""
    comm = cl.init(timeout=60)
    first = comm.empty((4, 5), np.float32)
    address = first.ctypes.data
    told = {
        "shape": first.shape,
        "symmetric": comm.is_symmetric(first),
        "part": comm.is_symmetric(first[1:]),
        "ordinary": comm.is_symmetric(np.ones(3)),
        "strided": comm.is_symmetric(first[:, ::2]),
        "none": comm.empty((0, 3)).shape,
    }
    view = first[2:]
    del first
    second = comm.empty((4, 5), np.float32)
    told["kept by a view"] = second.ctypes.data != address
    del view
    third = comm.empty((4, 5), np.float32)
    told["used again"] = third.ctypes.data == address
    third[:] = 3
    comm.barrier()
    comm.close()
    told["outlives"] = float(third.sum())
    child = os.fork()
    if child == 0:
        os._exit(int(third.sum()) if third.sum() == 60 else 1)
    told["in a forked child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return told


def accumulated() -> list[float]:
    """Accumulate in a wider dtype, which lies elsewhere; what one rank adds is small."""
    comm = cl.init()
    sums = []
    for make in (comm.empty, np.empty):
        for mode in ("staged", "pull"):
            x = make(5000, np.float16)
            x[:] = 2048 if comm.rank == 0 else 1
            comm.allreduce(x, accumulate="float32", algorithm="ring", mode=mode)
            sums.append(float(x.min()))
    return sums
