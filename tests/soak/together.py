# SPDX-License-Identifier: Apache-2.0
"""Blocks of calls on parts of one array, which overlap: as if one call came after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np

import collectives as cl
from tests.soak.oracle import INTEGERS, Vector, fold, ops_of, rows, vector

MOST_ELEMENTS = 40_000  # parts of more than 64 KiB are not fused
MOST_STEPS = 8
TREES = ("tree", "folded tree")
KINDS = ("allreduce",) * 6 + (*TREES, "scan", "broadcast", "allgather", "barrier")


@dataclass(frozen=True)
class Step:
    """One call of a block. A tree has several parts; the result goes where its part is, or out."""

    kind: str
    parts: tuple[slice, ...]
    out: slice | None
    op: str
    root: int
    later: bool  # async_op


@dataclass(frozen=True)
class Together:
    """A block on one communicator. Integers: chains of sums stay exact in any order."""

    number: int
    group: int  # index of the communicator among those of a rank
    dtype: str
    length: int
    start: int  # of the values in their period
    steps: tuple[Step, ...]


def together(random: Random, sizes: list[int], number: int) -> Together:
    """Draw a block."""
    group = random.randrange(len(sizes))
    dtype = random.choice(INTEGERS)
    length = int(2 ** random.uniform(0, MOST_ELEMENTS.bit_length() - 1))
    waits = random.random() < 0.3  # none of the block's calls is waited for within it
    usual, other = random.choices(ops_of(dtype), k=2)  # calls of one operation may be fused
    steps = [
        _step(random, random.choice((usual,) * 4 + (other,)), length, sizes[group], waits)
        for _ in range(random.randint(1, MOST_STEPS))
    ]
    return Together(number, group, dtype, length, random.randrange(1000), tuple(steps))


def _step(random: Random, op: str, length: int, p: int, waits: bool) -> Step:
    kind = random.choice(KINDS)
    parts = tuple(_part(random, length) for _ in range(random.randint(1, 4)))
    if kind == "folded tree":  # whose arrays share no memory
        cuts = sorted(random.randint(0, length) for _ in range(5))
        parts = tuple(slice(*pair, random.choice((1, 1, 2))) for pair in pairwise(cuts))
    n = _count(parts[0], length)
    start = random.randint(0, length - n)
    apart = not set(range(start, start + n)) & set(range(*parts[0].indices(length)))
    fresh = kind in ("allreduce", "scan") and apart and random.random() < 0.4
    return Step(
        kind=kind,
        parts=parts,
        out=slice(start, start + n) if fresh else None,
        op=op,
        root=random.randrange(p),
        later=waits or random.random() < 0.3,
    )


def _part(random: Random, length: int) -> slice:
    first, last = sorted(random.randint(0, length) for _ in range(2))
    return slice(first, last, random.choice((1, 1, 1, 1, 2, 3)))


def _count(part: slice, length: int) -> int:
    return len(range(*part.indices(length)))


class Block:
    """A block on one rank: what goes in, and what must be there afterwards."""

    def __init__(self, drawn: Together, comm: cl.Communicator) -> None:
        self.drawn, self.comm = drawn, comm
        period = rows(drawn.dtype, "sum", comm.size)
        everybodys = [vector(row, drawn.start, drawn.length) for row in period]
        self.mine = everybodys[comm.rank].copy()
        self.gathered: list[Vector] = []
        for step in drawn.steps:
            self._play(step, everybodys)
        self.wanted = everybodys[comm.rank]

    def make(self) -> Callable[[], None]:
        """Make the calls; return what waits for them and judges the results."""
        results = []
        with self.comm.group():
            for step in self.drawn.steps:
                results.append((step, self._call(step)))

        def judge() -> None:
            got = [result.wait() if step.later else result for step, result in results]
            gathered = [r for (step, _), r in zip(results, got, strict=True) if _gathers(step)]
            right = np.array_equal(self.mine, self.wanted) and all(
                np.array_equal(one, other)
                for one, other in zip(gathered, self.gathered, strict=True)
            )
            if not right:
                rank, p = self.comm.rank, self.comm.size
                raise AssertionError(f"rank {rank} of {p}: {self.drawn}: wrong result")

        return judge

    def _call(self, step: Step) -> Any:
        parts = [self.mine[part] for part in step.parts]
        out = None if step.out is None else self.mine[step.out]
        if step.kind == "barrier":
            return self.comm.barrier(async_op=step.later)
        if step.kind == "allgather":
            return self.comm.allgather(parts[0], async_op=step.later)
        if step.kind == "broadcast":
            return self.comm.broadcast(parts[0], step.root, async_op=step.later)
        if step.kind == "tree":
            tree = {"first": parts[0], "rest": parts[1:]}
            return self.comm.broadcast(tree, step.root, async_op=step.later)
        if step.kind == "folded tree":
            return self.comm.allreduce(parts, op=step.op, async_op=step.later)
        call = getattr(self.comm, step.kind)
        return call(parts[0], out, op=step.op, async_op=step.later)

    def _play(self, step: Step, everybodys: list[Vector]) -> None:
        """Do with NumPy to the arrays of all ranks what a call does."""
        for part in step.parts if step.kind in TREES else step.parts[:1]:
            given = np.stack([x[part] for x in everybodys])
            if _gathers(step):
                self.gathered.append(given.reshape(-1))
            for rank, x in enumerate(everybodys):
                target = x[part if step.out is None else step.out]
                if step.kind in ("broadcast", "tree"):
                    target[...] = given[step.root]
                elif step.kind in ("allreduce", "folded tree"):
                    target[...] = fold(given, step.op)
                elif step.kind == "scan":
                    target[...] = fold(given[: rank + 1], step.op)


def _gathers(step: Step) -> bool:
    return step.kind == "allgather"
