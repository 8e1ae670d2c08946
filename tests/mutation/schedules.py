# SPDX-License-Identifier: Apache-2.0
"""Runs a schedule as asynchronous ranks would: brute force, no symbols, no proof.

Every rank is a process that goes through its rounds. Messages from one rank to another arrive in
order; which rank goes on next is drawn by lot. A rank's rounds mean nothing to another rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from random import Random

from tests.mutation.values import Arithmetic, Element, Trees, WrongError, hold_to
from tests.mutation.words import (
    ALLTOALL,
    INPUT,
    LOCAL,
    LOCAL_REDUCE,
    OUTPUT,
    RECV_REDUCE,
    SCRATCH,
    SELF,
    SEND,
    Cell,
    Schedule,
    Step,
)

Vector = list[Element]


class Channel:
    """Messages from one rank to another: the n-th that is sent answers the n-th receive."""

    def __init__(self) -> None:
        self.sent: list[Vector] = []
        self.posted = 0
        self.taken = 0


class ScheduleRun:
    """One run of a schedule, with chunks of ``sizes`` elements."""

    def __init__(self, schedule: Schedule, in_place: bool, random: Random) -> None:
        self.schedule, self.outline = schedule, schedule.outline
        self.in_place, self.random = in_place, random
        self.arithmetic = Arithmetic(self.outline, random.getrandbits(60))
        self.sizes = self._draw_sizes()
        self.rendezvous = random.random() < 0.5
        p = self.outline.p
        self.channels = {(a, b): Channel() for a in range(p) for b in range(p)}
        self.memory: list[dict[Cell, Vector]] = [self._buffers(rank) for rank in range(p)]

    def run(self, claimed: Trees) -> None:
        """Raise WrongError where the schedule is seen to be wrong."""
        ranks = {rank: self._rank(rank) for rank in range(self.outline.p)}
        blocked: set[int] = set()
        while ranks:
            able = [rank for rank in ranks if rank not in blocked]
            if not able:
                raise WrongError(f"ranks {sorted(ranks)} wait for ever")
            rank = self.random.choice(able)
            try:
                if next(ranks[rank]):
                    blocked.clear()
                else:
                    blocked.add(rank)
            except StopIteration:
                del ranks[rank]
                blocked.clear()
        self._judge(claimed)

    def _draw_sizes(self) -> list[int]:
        """Nearly equal parts of some count, which may be below their number, or any sizes."""
        chunks = self.outline.chunks
        if self.outline.kind == ALLTOALL:
            return self._draw_blocks()
        kind = self.random.randrange(4)
        if kind == 0:
            return [self.random.randrange(3) for _ in range(chunks)]
        total = [0, 1, chunks - self.random.randrange(chunks), 2 * chunks + 1][kind]
        total = total if kind > 1 else chunks
        return [total // chunks + (c < total % chunks) for c in range(chunks)]

    def _draw_blocks(self) -> list[int]:
        """Any sizes; in place, of those that change places; equal, where a scratch is used."""
        p, steps = self.outline.p, [step for mine in self.schedule.ranks for step in mine]
        if any(buffer == SCRATCH for s in steps for buffer, _ in (*s.source, *s.target)):
            return [self.random.randrange(3)] * (p * p)
        sizes = [self.random.randrange(3) for _ in range(p * p)]
        if not self.in_place:
            return sizes
        return [sizes[max(s, d) * p + min(s, d)] for s in range(p) for d in range(p)]

    def _size(self, rank: int, cell: Cell) -> int:
        """The elements of a cell."""
        if self.outline.kind == ALLTOALL and cell[0] == SCRATCH:
            return self.sizes[0]
        return self.sizes[self.outline.chunk(rank, cell)]

    def _buffers(self, rank: int) -> dict[Cell, Vector]:
        outline = self.outline
        memory: dict[Cell, Vector] = {}
        lengths = ((OUTPUT, len(outline.outputs(rank))), (SCRATCH, outline.scratch_cells))
        for where in ((buffer, cell) for buffer, cells in lengths for cell in range(cells)):
            memory[where] = [self.arithmetic.garbage() for _ in range(self._size(rank, where))]
        for cell, chunk in enumerate(outline.inputs(rank)):
            home = outline.home(rank, (INPUT, cell), self.in_place)
            memory[home] = self._operand(rank, chunk)
        return memory

    def _operand(self, rank: int, chunk: int) -> Vector:
        return [self.arithmetic.contribution(rank, chunk, i) for i in range(self.sizes[chunk])]

    def _read(self, rank: int, cells: list[Cell]) -> Vector:
        home, memory = self.outline.home, self.memory[rank]
        return [x for cell in cells for x in memory[home(rank, cell, self.in_place)]]

    def _write(self, rank: int, cells: list[Cell], vector: Vector) -> None:
        start = 0
        for cell in cells:
            end = start + self._size(rank, cell)
            self.memory[rank][self.outline.home(rank, cell, self.in_place)] = vector[start:end]
            start = end
        if start != len(vector):
            raise WrongError(f"rank {rank} has room for {start} of {len(vector)} elements")

    def _rank(self, rank: int) -> Iterator[bool]:
        """The process of one rank: yields whether it got on, or is blocked."""
        for _, group in groupby(self.schedule.ranks[rank], key=lambda step: step.round):
            yield from self._round(rank, list(group))

    def _round(self, rank: int, steps: list[Step]) -> Iterator[bool]:
        awaited: list[tuple[Channel, int]] = []
        for step in steps:
            for peer in step.peers if step.op == SEND else ():
                channel = self.channels[rank, peer]
                channel.sent.append(self._read(rank, step.source))
                awaited.append((channel, len(channel.sent)))
        yield True
        waiting = [step for step in steps if step.op != SEND and step.op not in LOCAL]
        receives = [self._posted(rank, step) for step in waiting]
        while receives:
            ready = [r for r in receives if all(len(c.sent) > n for c, n in r[1])]
            if ready:
                chosen = self.random.choice(ready)
                receives.remove(chosen)
                self._receive(rank, *chosen)
            yield bool(ready)
        while self.rendezvous and any(channel.taken < number for channel, number in awaited):
            yield False
        for step in steps:
            if step.op in LOCAL:
                self._write(rank, step.target, self._local(rank, step))

    def _local(self, rank: int, step: Step) -> Vector:
        source = self._read(rank, step.source)
        if step.op != LOCAL_REDUCE:
            return source
        target = self._read(rank, step.target)
        if len(source) != len(target):
            raise WrongError(f"rank {rank} folds operands of different lengths")
        return [self.arithmetic.add(a, b) for a, b in zip(source, target, strict=True)]

    def _posted(self, rank: int, step: Step) -> tuple[Step, list[tuple[Channel, int]]]:
        tickets = []
        for peer in step.peers:
            if peer != SELF:
                channel = self.channels[peer, rank]
                tickets.append((channel, channel.posted))
                channel.posted += 1
        return step, tickets

    def _receive(self, rank: int, step: Step, tickets: list[tuple[Channel, int]]) -> None:
        arrived = iter(tickets)
        operands = []
        for peer in step.peers:
            if peer == SELF:
                operands.append(self._read(rank, step.source))
                continue
            channel, number = next(arrived)
            channel.taken += 1
            operands.append(channel.sent[number])
        if len({len(operand) for operand in operands}) > 1:
            raise WrongError(f"rank {rank} folds operands of different lengths")
        fold = self.arithmetic.fold if step.op == RECV_REDUCE else lambda items, _: items[0]
        self._write(
            rank,
            step.target,
            [fold(items, step.balanced) for items in zip(*operands, strict=True)],
        )

    def _judge(self, claimed: Trees) -> None:
        for (a, b), channel in self.channels.items():
            if channel.taken != len(channel.sent):
                raise WrongError(f"rank {b} leaves messages of rank {a} behind")
        results: dict[tuple[int, ...], Element] = {}
        for rank in range(self.outline.p):
            for cell, chunk in enumerate(self.outline.outputs(rank)):
                for place, element in enumerate(self.memory[rank][OUTPUT, cell]):
                    if element.number != self.arithmetic.result(rank, chunk, place):
                        raise WrongError(f"rank {rank} ends with a wrong chunk {chunk}")
                    results[rank, chunk, place] = element
            self._judge_inputs(rank)
        hold_to(claimed, self.outline, results)

    def _judge_inputs(self, rank: int) -> None:
        for cell, chunk in enumerate(self.outline.inputs(rank)):
            home = self.outline.home(rank, (INPUT, cell), self.in_place)
            if home[0] == INPUT and self.memory[rank][home] != self._operand(rank, chunk):
                raise WrongError(f"rank {rank} finds chunk {chunk} of its input changed")
