# SPDX-License-Identifier: Apache-2.0
"""Schedules and plans as read from their encodings: flat lists of integers.

Written from the description of the encoding, for the interpreters of this folder only: they are to
share no code, and no mistake, with the provers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

SCHEDULE, PLAN = 0x5343, 0x504C
ALLREDUCE, REDUCE_SCATTER, ALLGATHER, BROADCAST, REDUCE, BARRIER = range(6)
GATHER, SCATTER, ALLTOALL, SCAN, EXSCAN = range(6, 11)
INPUT, OUTPUT, SCRATCH, STAGE = range(4)
SEND, RECV, RECV_REDUCE, COPY, LOCAL_REDUCE = range(5)
LOCAL = (COPY, LOCAL_REDUCE)
INLINED = 1
SELF = -1

Thing = TypeVar("Thing")
Cell = tuple[int, int]  # buffer and cell


@dataclass(frozen=True)
class Outline:
    """What a collective is about: kind, ranks, root, chunks."""

    kind: int
    p: int
    root: int
    chunks: int

    @property
    def closed(self) -> bool:
        """Whether every result holds something of every rank: who has it knows that all came."""
        some = (BROADCAST, REDUCE, GATHER, SCATTER, SCAN, EXSCAN)
        return self.kind not in some

    @property
    def averages(self) -> bool:
        """Whether results are sums over all ranks, of which there can be a mean."""
        return self.kind in (ALLREDUCE, REDUCE_SCATTER, REDUCE) and self.p > 1

    @property
    def sums(self) -> bool:
        return self.averages or self.kind in (SCAN, EXSCAN)

    def inputs(self, rank: int) -> range:
        """The chunks of which a rank holds an operand, in the order of its input cells."""
        if self.kind == ALLTOALL:
            return range(rank * self.p, (rank + 1) * self.p)
        if self.kind in (ALLGATHER, GATHER):
            return self._own(rank)
        lacks = self.kind in (BROADCAST, SCATTER) and rank != self.root
        return range(0 if lacks else self.chunks)

    def outputs(self, rank: int) -> range:
        """The chunks that a rank is to end up with, in the order of its output cells."""
        if self.kind == ALLTOALL:
            return range(rank, self.chunks, self.p)
        if self.kind in (REDUCE_SCATTER, SCATTER):
            return self._own(rank)
        lacks = self.kind in (REDUCE, GATHER) and rank != self.root
        lacks = lacks or (self.kind == EXSCAN and rank == 0)
        return range(0 if lacks else self.chunks)

    @property
    def scratch_cells(self) -> int:
        """Cells of a rank's scratch: one per chunk; in an alltoall one per rank, for any block."""
        return self.p if self.kind == ALLTOALL else self.chunks

    def chunk(self, rank: int, cell: Cell) -> int:
        """The chunk that a cell stands for; not for a scratch cell of an alltoall."""
        buffer, number = cell
        chunks = {INPUT: self.inputs(rank), OUTPUT: self.outputs(rank)}
        return chunks.get(buffer, range(self.chunks))[number]

    def contributors(self, rank: int, chunk: int) -> range:
        """The ranks whose operands make a rank's result."""
        if self.kind in (SCAN, EXSCAN):
            return range(rank + (self.kind == SCAN))
        if self.kind in (BROADCAST, SCATTER):
            return range(self.root, self.root + 1)
        if self.kind in (ALLGATHER, GATHER, ALLTOALL):
            owner = chunk * self.p // self.chunks
            return range(owner, owner + 1)
        return range(self.p)

    def home(self, rank: int, cell: Cell, in_place: bool) -> Cell:
        """Where a cell lies: in place, an input lies where the output of the same chunk lies.

        Blocks of an alltoall change places: what goes to a rank lies where its answer comes.
        """
        if in_place and cell[0] == INPUT:
            if self.kind == ALLTOALL:
                return OUTPUT, cell[1]
            chunk, outputs = self.inputs(rank)[cell[1]], self.outputs(rank)
            if chunk in outputs:
                return OUTPUT, outputs.index(chunk)
        return cell

    def _own(self, rank: int) -> range:
        each = self.chunks // self.p
        return range(rank * each, (rank + 1) * each)


@dataclass(frozen=True)
class Step:
    """One step of a schedule."""

    op: int
    round: int
    balanced: bool
    peers: list[int]
    source: list[Cell]
    target: list[Cell]


@dataclass(frozen=True)
class Schedule:
    """A schedule: ``ranks[r]`` are the steps of rank r."""

    outline: Outline
    ranks: list[list[Step]]


@dataclass(frozen=True)
class Operand:
    """Cells of a rank; ``area`` is the message of that rank's stage, or -1."""

    rank: int
    area: int
    cells: list[Cell]


@dataclass(frozen=True)
class PlanOp:
    """One move of a plan; ``waits`` are (peer, op, tiles back)."""

    round: int
    phase: int
    lag: int
    balanced: bool
    complete: bool
    post: bool
    fence: bool
    sources: list[Operand]
    destinations: list[Operand]
    waits: list[tuple[int, int, int]]


@dataclass(frozen=True)
class RankPlan:
    """A rank's ops; ``writers[a]`` is the op that fills area a of its stage."""

    writers: list[int]
    ops: list[PlanOp]


@dataclass(frozen=True)
class Plan:
    """A plan: ``depth`` slots per rank; ``ranks[r]`` is the part of rank r."""

    outline: Outline
    mode: int
    around: bool  # what moves store others may see late, until a fence
    depth: int
    max_lag: int
    ranks: list[RankPlan]


class Words:
    """Reads integers one after the other."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = iter(words)

    def next(self) -> int:
        return next(self._words)

    def many(self, read: Callable[[], Thing]) -> list[Thing]:
        """Read a number, then as many things."""
        return [read() for _ in range(self.next())]

    def cells(self) -> list[Cell]:
        ranges = self.many(lambda: (self.next(), self.next(), self.next()))
        return [(buffer, cell) for buffer, first, n in ranges for cell in range(first, first + n)]

    def outline(self) -> Outline:
        return Outline(self.next(), self.next(), self.next(), self.next())

    def step(self) -> Step:
        op, number, shape = self.next(), self.next(), self.next()
        return Step(op, number, shape == 1, self.many(self.next), self.cells(), self.cells())

    def operand(self) -> Operand:
        return Operand(self.next(), self.next(), self.cells())

    def plan_op(self) -> PlanOp:
        number, phase, lag, shape = self.next(), self.next(), self.next(), self.next()
        complete, post, fence = self.next() == 1, self.next() == 1, self.next() == 1
        sources, destinations = self.many(self.operand), self.many(self.operand)
        waits = self.many(lambda: (self.next(), self.next(), self.next()))
        said = (complete, post, fence)
        return PlanOp(number, phase, lag, shape == 1, *said, sources, destinations, waits)

    def rank_plan(self) -> RankPlan:
        areas = self.many(lambda: (self.next(), self.next(), self.next()))
        return RankPlan([writer for _, _, writer in areas], self.many(self.plan_op))


def read(words: Sequence[int]) -> Schedule | Plan:
    """Read the encoding of a schedule or of a plan."""
    reader = Words(words)
    magic, version = reader.next(), reader.next()
    if (magic, version) not in ((SCHEDULE, 1), (PLAN, 2)):
        raise ValueError(f"no encoding that is known here: {magic:#x}, version {version}")
    outline = reader.outline()
    if magic == SCHEDULE:
        return Schedule(outline, [reader.many(reader.step) for _ in range(outline.p)])
    mode, around, depth = reader.next(), reader.next() == 1, reader.next()
    max_lag, _stride = reader.next(), reader.next()
    ranks = [reader.rank_plan() for _ in range(outline.p)]
    return Plan(outline, mode, around, depth, max_lag, ranks)
