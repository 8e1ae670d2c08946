# SPDX-License-Identifier: Apache-2.0
"""Every collective in every way, against the oracle; the same for ranks as threads and processes.

Each function runs on all ranks at once and returns what was wrong on this one, as sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import collectives as cl
from tests.oracle import DTYPES, INTEGERS, OPS, contribution, differs, gathered, reduction

SMALL = (0, 1, 3, 17, 1009)  # fewer and more than ranks; none but 0 is a multiple of p > 3
LARGE = 300_007  # several tiles


def once(
    comm: cl.Communicator,
    kind: str,
    count: int,
    dtype: str = "float32",
    op: str = "sum",
    root: int = 0,
    **options: Any,
) -> str | None:
    """Make one call, out of place where there is a choice; return what is wrong."""
    p, rank = comm.size, comm.rank
    if kind == "barrier":
        comm.barrier(**options)
        return None
    length = p * count if kind == "reduce_scatter" else count
    x = contribution(dtype, op, rank, p, length)
    before = x.copy()
    if kind == "broadcast":
        wanted = contribution(dtype, op, root, p, count)
        return differs(comm.broadcast(x, root, **options), wanted)
    if kind == "allgather":
        wrong = differs(comm.allgather(x, **options), gathered(dtype, p, count))
    elif kind == "reduce_scatter":
        wanted = reduction(dtype, op, p, length)[rank * count : (rank + 1) * count]
        wrong = differs(comm.reduce_scatter(x, op=op, **options), wanted, op)
    elif kind == "allreduce":
        out = comm.allreduce(x, np.empty_like(x), op=op, **options)
        wrong = differs(out, reduction(dtype, op, p, count), op)
    else:
        out = comm.reduce(x, np.empty_like(x), op=op, root=root, **options)
        wanted = reduction(dtype, op, p, count)
        here = rank == root
        wrong = differs(out, wanted, op) if here else _not_none(out)
    return wrong or differs(x, before)


def in_place(comm: cl.Communicator, count: int, **options: Any) -> Iterator[str | None]:
    """Make the calls that have a form in place."""
    p, rank = comm.size, comm.rank
    x = contribution("float32", "sum", rank, p, count)
    yield _same(comm.allreduce(x, **options), x)
    yield differs(x, reduction("float32", "sum", p, count))
    for root in range(p):
        x = contribution("float32", "sum", rank, p, count)
        comm.reduce(x, root=root)
        reduced = reduction("float32", "sum", p, count)
        kept = contribution("float32", "sum", rank, p, count)
        yield differs(x, reduced if rank == root else kept)
    whole = np.zeros((p, count), np.float32)
    whole[rank] = contribution("float32", "sum", rank, p, count)
    yield _same(comm.allgather(whole[rank], whole), whole)
    yield differs(whole.ravel(), gathered("float32", p, count))
    x = contribution("float32", "sum", rank, p, p * count)
    mine = slice(rank * count, (rank + 1) * count)
    comm.reduce_scatter(x, x[mine])
    yield differs(x[mine], reduction("float32", "sum", p, p * count)[mine])


def algorithms(comm: cl.Communicator, modes: tuple[str | None, ...]) -> list[str]:
    """Every algorithm in every mode with every count, rooted ones with every root."""
    wrong: list[str] = []
    for algorithm in cl.algorithms():
        if not algorithm.fits(comm.size):
            continue
        rooted = algorithm.kind in ("broadcast", "reduce")
        split = algorithm.kind in ("allgather", "reduce_scatter")
        for mode in modes:
            for count in (*SMALL, LARGE // comm.size if split else LARGE):
                for root in range(comm.size if rooted and count == 3 else 1):
                    name = algorithm.name
                    found = once(comm, algorithm.kind, count, root=root, algorithm=name, mode=mode)
                    where = f"{algorithm.kind} {name} {mode} n={count} root={root}"
                    wrong += [f"{where}: {found}"] if found else []
    return wrong


def dtypes(comm: cl.Communicator) -> list[str]:
    """Every dtype with every op that it has, in every kind."""
    wrong: list[str] = []
    for dtype in DTYPES:
        for op in OPS:
            if op == "avg" and dtype in INTEGERS:
                continue
            for kind in ("allreduce", "reduce_scatter", "reduce"):
                found = once(comm, kind, 1003, dtype, op, root=comm.size - 1)
                wrong += [f"{kind} {op} {dtype}: {found}"] if found else []
        for kind in ("allgather", "broadcast"):
            found = once(comm, kind, 1003, dtype, root=comm.size - 1)
            wrong += [f"{kind} {dtype}: {found}"] if found else []
    return wrong


def places(comm: cl.Communicator) -> list[str]:
    """In place, small and large."""
    return [found for count in (0, 1, 5, 40_001) for found in in_place(comm, count) if found]


def parts(comm: cl.Communicator) -> list[str]:
    """Parts of unequal length, some empty."""
    wrong = []
    p, rank = comm.size, comm.rank
    for counts in (list(range(p)), [0] * p, [5 * (r % 2) for r in range(p)], [9000] * p):
        x = np.full((counts[rank], 3), rank, np.int32)
        wanted = np.concatenate([np.full((n, 3), r, np.int32) for r, n in enumerate(counts)])
        found = differs(comm.allgatherv(x, counts), wanted)
        wrong += [f"allgatherv {counts}: {found}"] if found else []
    return wrong


def shapes(comm: cl.Communicator) -> list[str]:
    """Shapes of results, read-only and strided arrays, buffers."""
    p, rank = comm.size, comm.rank
    ones = np.ones((2 * p, 3), np.float32)
    frozen = np.ones(4)
    frozen.flags.writeable = False
    whole = np.ones((4, 6), np.int64)
    half = whole[:, ::2]
    data = bytearray([1, 2, 3])
    checks = [
        differs(comm.allgather(np.float32(rank)), np.arange(p, dtype=np.float32)),
        differs(comm.allgather(ones), np.ones((2 * p * p, 3), np.float32)),
        differs(comm.reduce_scatter(ones), np.full((2, 3), p, np.float32)),
        differs(comm.allreduce(np.array(2.0)), np.array(2.0 * p)),
        differs(comm.allreduce(frozen), np.full(4, float(p))),
        differs(frozen, np.ones(4)),
        differs(comm.broadcast(frozen), np.ones(4)),
        _same(comm.allreduce(half), half),
        differs(whole[:, 0], np.full(4, p)),
        differs(whole[:, 1], np.ones(4, np.int64)),
        differs(comm.allreduce(np.asfortranarray(ones)), np.full((2 * p, 3), p, np.float32)),
        _same(comm.allreduce(data), data),
        differs(np.frombuffer(data, np.uint8), np.array([p, 2 * p, 3 * p], np.uint8)),
        differs(comm.allreduce(bytes(2)), np.zeros(2, np.uint8)),
    ]
    return [found for found in checks if found]


def _same(got: object, wanted: object) -> str | None:
    return None if got is wanted else "the result is not the array that was passed"


def _not_none(got: object) -> str | None:
    return None if got is None else f"{got} instead of None"
