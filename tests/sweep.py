# SPDX-License-Identifier: Apache-2.0
"""Every collective in every way, against the oracle; the same for ranks as threads and processes.

Each function runs on all ranks at once and returns what was wrong on this one, as sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import collectives as cl
from tests.oracle import DTYPES, contribution, differs, gathered, ops_of, reduction

SMALL = (0, 1, 3, 17, 1009)  # fewer and more than ranks; none but 0 is a multiple of p > 3
LARGE = 300_007  # several tiles
ROOTED = ("broadcast", "reduce", "gather", "scatter")
FOLDS = ("allreduce", "reduce_scatter", "reduce")
SCANS = ("scan", "exscan")
MOVES = ("allgather", "broadcast", "gather", "scatter", "alltoall")
SPLIT = ("allgather", "reduce_scatter", "gather", "scatter", "alltoall")  # `count` is one part


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
    if kind == "barrier":
        comm.barrier(**options)
        return None
    if kind == "broadcast":
        x = contribution(dtype, op, comm.rank, comm.size, count)
        wanted = contribution(dtype, op, root, comm.size, count)
        return differs(comm.broadcast(x, root, **options), wanted)
    if kind in ("allgather", "gather", "scatter", "alltoall"):
        return _moved(comm, kind, count, dtype, root, options)
    return _folded(comm, kind, count, dtype, op, root, options)


def _moved(
    comm: cl.Communicator, kind: str, count: int, dtype: str, root: int, options: Any
) -> str | None:
    p, rank = comm.size, comm.rank
    mine = slice(rank * count, (rank + 1) * count)
    whole = kind in ("scatter", "alltoall")
    x = contribution(dtype, "sum", rank, p, p * count if whole else count)
    before = x.copy()
    if kind == "allgather":
        wrong = differs(comm.allgather(x, **options), gathered(dtype, p, count))
    elif kind == "gather":
        got = comm.gather(x, root=root, **options)
        wrong = differs(got, gathered(dtype, p, count)) if rank == root else _not_none(got)
    elif kind == "scatter":
        part = np.empty_like(x[mine])
        out = comm.scatter(x if rank == root else None, part, root=root, **options)
        wrong = differs(out, contribution(dtype, "sum", root, p, p * count)[mine])
    else:
        out = comm.alltoall(x, np.empty_like(x), **options)
        blocks = [contribution(dtype, "sum", r, p, p * count)[mine] for r in range(p)]
        wrong = differs(out, np.concatenate(blocks))
    return wrong or differs(x, before)


def _folded(
    comm: cl.Communicator, kind: str, count: int, dtype: str, op: str, root: int, options: Any
) -> str | None:
    p, rank = comm.size, comm.rank
    length = p * count if kind == "reduce_scatter" else count
    x = contribution(dtype, op, rank, p, length)
    before = x.copy()
    if kind == "reduce_scatter":
        wanted = reduction(dtype, op, p, length)[rank * count : (rank + 1) * count]
        wrong = differs(comm.reduce_scatter(x, op=op, **options), wanted, op)
    elif kind == "allreduce":
        out = comm.allreduce(x, np.empty_like(x), op=op, **options)
        wrong = differs(out, reduction(dtype, op, p, count), op)
    elif kind == "reduce":
        out = comm.reduce(x, np.empty_like(x), op=op, root=root, **options)
        wanted = reduction(dtype, op, p, count)
        wrong = differs(out, wanted, op) if rank == root else _not_none(out)
    elif kind == "scan":
        out = comm.scan(x, np.empty_like(x), op=op, **options)
        wrong = differs(out, reduction(dtype, op, rank + 1, count))
    else:
        out = comm.exscan(x, np.ones_like(x), op=op, **options)
        wrong = differs(out, reduction(dtype, op, rank, count) if rank else np.ones_like(x))
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
    for op in ("max", "sum"):
        x = contribution("float32", "sum", rank, p, count)
        yield _same(comm.scan(x, op=op, **options), x)
        yield differs(x, reduction("float32", op, rank + 1, count))
        x = contribution("float32", "sum", rank, p, count)
        yield _same(comm.exscan(x, op=op, **options), x)
        kept = contribution("float32", "sum", 0, p, count)
        yield differs(x, reduction("float32", op, rank, count) if rank else kept)
    x = contribution("float32", "sum", rank, p, p * count)
    mine = slice(rank * count, (rank + 1) * count)
    comm.reduce_scatter(x, x[mine])
    yield differs(x[mine], reduction("float32", "sum", p, p * count)[mine])
    yield from moved_in_place(comm, count)


def moved_in_place(comm: cl.Communicator, count: int) -> Iterator[str | None]:
    """Make the moving calls that have a form in place."""
    p, rank = comm.size, comm.rank
    mine = slice(rank * count, (rank + 1) * count)
    everybodys = [contribution("float32", "sum", r, p, p * count) for r in range(p)]
    whole = np.zeros((p, count), np.float32)
    whole[rank] = contribution("float32", "sum", rank, p, count)
    yield _same(comm.allgather(whole[rank], whole), whole)
    yield differs(whole.ravel(), gathered("float32", p, count))
    for root in range(p):
        whole = np.zeros((p, count), np.float32)
        whole[rank] = contribution("float32", "sum", rank, p, count)
        kept = whole.copy()
        comm.gather(whole[rank], whole, root=root)
        filled = gathered("float32", p, count) if rank == root else kept.ravel()
        yield differs(whole.ravel(), filled)
        x = everybodys[rank].copy()
        part = x[mine] if rank == root else np.zeros(count, np.float32)
        found = comm.scatter(x, part, root=root) if rank == root else comm.scatter(part, root=root)
        yield _same(found, part)
        yield differs(part, everybodys[root][mine])
        yield differs(np.delete(x, mine), np.delete(everybodys[rank], mine))
    x = everybodys[rank].copy()
    yield _same(comm.alltoall(x), x)
    yield differs(x, np.concatenate([theirs[mine] for theirs in everybodys]))


def algorithms(comm: cl.Communicator, modes: tuple[str | None, ...], share: int = 1) -> list[str]:
    """Every algorithm in every mode with every count, rooted ones with every root.

    ``share``: of the counts but 3, with which all roots are tried, so many take turns; above 1, of
    more than three ranks one or two roots.
    """
    wrong: list[str] = []
    number = turn = 0
    every = comm.size - 1 if share > 1 and comm.size > 3 else 1
    for algorithm in cl.algorithms():
        if not algorithm.fits(comm.size):
            continue
        rooted = algorithm.kind in ROOTED
        split = algorithm.kind in SPLIT
        number += 1  # so that the next one begins elsewhere
        for mode in modes:
            for count in (*SMALL, LARGE // comm.size if split else LARGE):
                number += 1
                if count != 3 and number % share:
                    continue
                roots = range(1)
                if rooted and count == 3:
                    turn += 1
                    roots = range(turn % every, comm.size, every)
                for root in roots:
                    name = algorithm.name
                    found = once(comm, algorithm.kind, count, root=root, algorithm=name, mode=mode)
                    where = f"{algorithm.kind} {name} {mode} n={count} root={root}"
                    wrong += [f"{where}: {found}"] if found else []
    return wrong


def dtypes(comm: cl.Communicator, share: int = 1) -> list[str]:
    """Every dtype with every op that it has, in every kind; of them one of ``share``.

    Where that has no divisor in common with the number of kinds, these take turns.
    """
    wrong: list[str] = []
    number = comm.size  # so that other numbers of ranks take others
    for dtype in DTYPES:
        for op in ops_of(dtype):
            for kind in FOLDS if op == "avg" else FOLDS + SCANS:
                number += 1
                if number % share:
                    continue
                found = once(comm, kind, 1003, dtype, op, root=comm.size - 1)
                wrong += [f"{kind} {op} {dtype}: {found}"] if found else []
        for kind in MOVES:
            found = once(comm, kind, 1003, dtype, root=comm.size - 1)
            wrong += [f"{kind} {dtype}: {found}"] if found else []
    return wrong


def places(comm: cl.Communicator) -> list[str]:
    """In place, small and large."""
    return [found for count in (0, 1, 5, 40_001) for found in in_place(comm, count) if found]


def parts(comm: cl.Communicator) -> list[str]:
    """Parts of unequal length, some empty."""
    wrong = []
    p = comm.size
    for counts in (list(range(p)), [0] * p, [5 * (r % 2) for r in range(p)], [9000] * p):
        for name, found in unequal(comm, counts):
            wrong += [f"{name} {counts}: {found}"] if found else []
    return wrong


def unequal(comm: cl.Communicator, counts: list[int]) -> Iterator[tuple[str, str | None]]:
    """Make every call that takes lengths, with them and, where it finds them itself, without."""
    p, rank = comm.size, comm.rank
    own, total = counts[rank], sum(counts)
    mine = slice(sum(counts[:rank]), sum(counts[: rank + 1]))
    x = np.full((own, 3), rank, np.int32)
    joined = np.concatenate([np.full((n, 3), r, np.int32) for r, n in enumerate(counts)])
    root = p - 1
    for lengths in (counts, None):
        yield "allgatherv", differs(comm.allgatherv(x, lengths), joined)
        got = comm.gatherv(x, lengths, root=root)
        yield "gatherv", differs(got, joined) if rank == root else _not_none(got)
    whole = joined * 0
    whole[mine] = x
    yield "allgatherv in place", differs(comm.allgatherv(whole[mine], counts, whole), joined)
    part = np.empty((own, 3), np.int32)
    comm.scatterv(joined if rank == root else None, counts, part, root=root)
    yield "scatterv", differs(part, x)
    number = np.arange(3 * total, dtype=np.int32).reshape(total, 3)
    yield "reduce_scatterv", differs(comm.reduce_scatterv(number, counts), p * number[mine])
    yield "reduce_scatterv kept x", differs(number.ravel(), np.arange(3 * total, dtype=np.int32))
    reduced = p * number[mine]
    comm.reduce_scatterv(number, counts, number[mine])
    yield "reduce_scatterv in place", differs(number[mine], reduced)
    yield from exchanges(comm, counts)


def exchanges(comm: cl.Communicator, counts: list[int]) -> Iterator[tuple[str, str | None]]:
    """Rank s sends counts[(s + d) % p] rows to rank d, or nothing where their sum is odd."""
    p, rank = comm.size, comm.rank
    table = [[counts[(s + d) % p] * ((s + d) % 2 == 0) for d in range(p)] for s in range(p)]
    blocks = [
        [np.full((n, 2), 100 * s + d) for d, n in enumerate(row)] for s, row in enumerate(table)
    ]
    x = np.concatenate(blocks[rank])
    wanted = np.concatenate([blocks[s][rank] for s in range(p)])
    arriving = [table[s][rank] for s in range(p)]
    yield "alltoallv", differs(comm.alltoallv(x, table[rank]), wanted)
    yield "alltoallv, both", differs(comm.alltoallv(x, table[rank], arriving), wanted)
    out = np.empty_like(wanted)
    yield "alltoallv, table", _same(comm.alltoallv(x, table, arriving, out), out)
    yield "alltoallv, table", differs(out, wanted)
    # The table is symmetric, so blocks change places.
    yield "alltoallv in place", differs(comm.alltoallv(x, table, out=x), wanted)


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
        differs(comm.scan(frozen), np.full(4, rank + 1.0)),
        differs(comm.exscan(frozen), np.full(4, float(max(rank, 1)))),
        differs(comm.scan(np.array(2.0)), np.array(2.0 * (rank + 1))),
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
    return [found for found in (*checks, *_turned(comm), *_scattered(comm)) if found]


def _turned(comm: cl.Communicator) -> Iterator[str | None]:
    """Exchange the blocks of arrays with negative strides."""
    p, rank = comm.size, comm.rank
    grid = np.arange(4 * p).reshape(2 * p, 2)
    mine = slice(2 * rank, 2 * rank + 2)
    for view in (grid[:, ::-1], grid[::-1]):
        wanted = np.concatenate([view[mine]] * p)
        yield differs(comm.alltoall(view, np.empty_like(grid)), wanted)
        yield _same(comm.alltoall(view), view)
        yield differs(view, wanted)
        grid[...] = np.arange(4 * p).reshape(2 * p, 2)


def _scattered(comm: cl.Communicator) -> Iterator[str | None]:
    """Say in every way what part of rank 0's numbers a rank expects."""
    p, rank = comm.size, comm.rank
    numbers = np.arange(float(p)) if rank == 0 else None
    frozen = np.full(1, 9.0)
    frozen.flags.writeable = False
    strided = np.zeros((1, 4))[:, ::2]
    yield differs(comm.scatter(numbers, np.array(9.0)), np.array(float(rank)))
    yield differs(comm.scatter(frozen if rank else numbers), np.array([float(rank)]))
    yield differs(frozen, np.full(1, 9.0))
    rows = np.arange(2.0 * p).reshape(p, 2)
    found = comm.scatter(strided if rank else rows)
    yield differs(found, rows[rank : rank + 1])
    yield _same(found, strided) if rank else None


def _same(got: object, wanted: object) -> str | None:
    return None if got is wanted else "the result is not the array that was passed"


def _not_none(got: object) -> str | None:
    return None if got is None else f"{got} instead of None"
