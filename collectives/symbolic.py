# SPDX-License-Identifier: Apache-2.0
"""Follow the chunks through a schedule: who sends what when, and what each rank then holds."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collectives.catalogue import Schedule, Segment, Step, by_round
from collectives.own import SELF

# One cell's content: the chunk it stands for, and the ranks whose contributions are folded in.
Value = tuple[int, frozenset[int]]
Cells = dict[tuple[str, int], Value]


@dataclass(frozen=True)
class Message:
    """One message: the values it carries, and whether the receiver folds them or overwrites."""

    round: int
    sender: int
    receiver: int
    values: tuple[Value, ...]
    folds: bool

    @property
    def chunks(self) -> tuple[int, ...]:
        """The chunks that travel."""
        return tuple(chunk for chunk, _ in self.values)


@dataclass(frozen=True)
class SymbolicRun:
    """A schedule as it runs.

    ``rounds`` are the labels of those in which messages travel; ``held[t][rank]`` is what the
    cells of a rank hold after ``t`` of them and the local steps that follow.
    """

    messages: tuple[Message, ...]
    rounds: tuple[int, ...]
    held: tuple[tuple[Cells, ...], ...]


def symbolic_run(schedule: Schedule) -> SymbolicRun:
    """Run a schedule on symbolic values."""
    memory = [dict(_inputs(schedule, rank)) for rank in range(schedule.p)]
    messages: list[Message] = []
    rounds: list[int] = []
    held: list[tuple[Cells, ...]] = []
    for label, steps in by_round(schedule):
        before = tuple(dict(cells) for cells in memory)
        sent = _round(label, steps, memory)
        if sent:
            messages += sent
            rounds.append(label)
            held.append(before)
    held.append(tuple(memory))
    return SymbolicRun(tuple(messages), tuple(rounds), tuple(held))


def _inputs(schedule: Schedule, rank: int) -> Iterator[tuple[tuple[str, int], Value]]:
    """Yield the cells that are defined when a call begins, as native/schedule/layout.h has them."""
    first, cells = 0, schedule.chunks
    if schedule.kind in ("allgather", "gather", "alltoall"):
        cells = schedule.chunks // schedule.p
        first = rank * cells
    elif schedule.kind in ("broadcast", "scatter") and rank != schedule.root:
        cells = 0
    for cell in range(cells):
        yield ("input", cell), (first + cell, frozenset({rank}))


def _round(label: int, steps: list[tuple[int, Step]], memory: list[Cells]) -> list[Message]:
    """Run one round: all ranks send, then all receive, then each works on its own."""
    wire: dict[tuple[int, int], deque[list[Value]]] = defaultdict(deque)
    for rank, step in steps:
        if step.op == "send":
            for peer in step.peers:
                wire[rank, peer].append(_read(memory[rank], step.source))
    messages: list[Message] = []
    for rank, step in steps:
        if step.op in ("recv", "recv_reduce"):
            arrived = {q: wire[q, rank].popleft() for q in step.peers if q != SELF}
            folds = step.op == "recv_reduce"
            messages += [
                Message(label, q, rank, tuple(values), folds) for q, values in arrived.items()
            ]
            _write(memory[rank], step.target, _received(memory[rank], step, arrived))
    for rank, step in steps:
        if step.op in ("copy", "reduce"):
            operands = [_read(memory[rank], step.source)]
            if step.op == "reduce":
                operands.append(_read(memory[rank], step.target))
            _write(memory[rank], step.target, _folded(operands))
    return messages


def _received(cells: Cells, step: Step, arrived: dict[int, list[Value]]) -> list[Value]:
    return _folded([_read(cells, step.source) if q == SELF else arrived[q] for q in step.peers])


def _folded(operands: list[list[Value]]) -> list[Value]:
    return [
        (values[0][0], frozenset[int]().union(*(ranks for _, ranks in values)))
        for values in zip(*operands, strict=True)
    ]


def _places(segments: Iterable[Segment]) -> Iterator[tuple[str, int]]:
    for segment in segments:
        for cell in range(segment.first, segment.first + segment.cells):
            yield segment.buffer, cell


def _read(cells: Cells, segments: Iterable[Segment]) -> list[Value]:
    return [cells[place] for place in _places(segments)]


def _write(cells: Cells, segments: Iterable[Segment], values: list[Value]) -> None:
    cells.update(zip(_places(segments), values, strict=True))
