# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_reproducible` do."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np

import collectives as cl
from tests.canonical import FLOATS, canonical_fold, exact, operands

KINDS = ("allreduce", "reduce_scatter", "reduce", "scan", "exscan")


def bits(share: int = 1) -> list[str]:
    """Compare results of all ways to make them with the definition; return what differs.

    ``share``: so many dtypes take turns.
    """
    comm = cl.init(timeout=30)
    wrong = []
    for kind in KINDS:
        names = (None, *(a.name for a in cl.algorithms(kind) if a.fits(comm.size)))
        for turn, name in enumerate(names):
            # Of more ranks fewer dtypes: they all share two cores.
            dtypes = FLOATS if comm.size < 8 else FLOATS[:2]
            for dtype in dtypes[turn % share :: share]:
                wrong += differing(comm, kind, name, dtype)
    comm.close()
    return wrong


def some_bits() -> list[str]:
    """Compare a part of them: each algorithm with some dtypes, the next one with others."""
    return bits({1: 1, 8: 2}.get(int(os.environ["COLLECTIVES_SIZE"]), 3))


def differing(comm: cl.Communicator, kind: str, name: str | None, dtype: str) -> list[str]:
    """Make one reduction in every mode and place."""
    p, rank = comm.size, comm.rank
    for n in (p * 8, p * 3000):  # one inline message; more than a tile of float64
        count = {"scan": rank + 1, "exscan": rank}.get(kind, p)
        mine = drawn(dtype, rank, n)
        expected = folded(dtype, count, n) if count else mine
        if kind == "reduce_scatter":
            expected = expected.reshape(p, -1)[rank]
        for mode in (None, "staged", "inline", "pull", "push"):
            options: dict[str, Any] = {"algorithm": name, "mode": mode, "reproducible": True}
            for place in ("in place", "apart", "reached"):
                x = comm.empty(n, mine.dtype) if place == "reached" else mine.copy()
                x[...] = mine
                out = np.empty_like(expected) if place == "apart" and kind != "exscan" else None
                try:
                    got = getattr(comm, kind)(x, out, **options)
                except cl.UnsupportedError:
                    return []  # not canonical among so many ranks
                if got is not None and got.tobytes() != expected.tobytes():
                    return [f"{kind} {name} {dtype} {mode} {place} {n}"]
    return []


@cache
def drawn(dtype: str, rank: int, n: int) -> Any:
    """Return the operand of a rank, the same for every way to reduce it."""
    row = operands(dtype, rank, n)
    row.flags.writeable = False
    return row


@cache
def folded(dtype: str, ranks: int, n: int) -> Any:
    """Return the sum of the first ranks' operands by its definition."""
    result = canonical_fold([drawn(dtype, rank, n) for rank in range(ranks)], "sum")
    result.flags.writeable = False
    return result


def exactly() -> list[str]:
    """Compare exact sums with fractions; return what differs."""
    comm = cl.init(timeout=30)
    wrong = []
    for dtype in ("float32", "float64", "complex64"):
        rows = [operands(dtype, r, 60) for r in range(8)]
        for op in ("sum", "avg"):
            expected = exact(rows, op)
            mine = np.stack(rows)[comm.rank :: comm.size]
            if comm.exact_sum(mine, op=op).tobytes() != expected.tobytes():
                wrong.append(f"exact_sum {dtype} {op}")
            expected = exact(rows[: comm.size], op)
            for name in ("ring", None):
                x = rows[comm.rank].copy()
                got = comm.allreduce(x, op=op, reproducible="any_p", algorithm=name)
                if got.tobytes() != expected.tobytes():
                    wrong.append(f"allreduce {dtype} {op} {name}")
    comm.close()
    return wrong
