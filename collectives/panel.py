# SPDX-License-Identifier: Apache-2.0
"""What a drawing shows of a rank's memory: cells in rows and columns, each more or less filled.

Most collectives are about chunks: one cell for each. In a scan ranks fold different operands, so
there a cell is an operand; in an alltoall it is a block, by its source and its destination.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from collectives.catalogue import Schedule
from collectives.symbolic import Cells, Message

_MOVED = ("allgather", "broadcast", "gather", "scatter")  # where nothing is folded
_BESIDE = 0.45  # how high a cell is filled with what is there and not yet in the result
_LISTED = 2  # blocks that the label of a message names one by one


class Panel(ABC):
    """The picture of one rank; all ranks have the same.

    ``hues`` is the number of colours, ``words`` explain a cell.
    """

    rows: int
    columns: int
    hues: int
    words: str

    @abstractmethod
    def hue(self, row: int, column: int) -> int:
        """Return the number of a cell's colour."""

    @abstractmethod
    def shares(self, cells: Cells) -> dict[tuple[int, int], float]:
        """Return how far the cells (row, column) are filled, up to 1; others are empty."""

    @abstractmethod
    def marks(self, message: Message) -> tuple[int, ...]:
        """Return the numbers of the colours that travel in a message."""

    @abstractmethod
    def label(self, message: Message) -> str:
        """Say what a message carries; "" where all carry the same."""


class Chunks(Panel):
    """A cell per chunk: the higher it is filled, the more contributions the rank holds."""

    def __init__(self, schedule: Schedule) -> None:
        self.rows, self.columns, self.hues = 1, schedule.chunks, schedule.chunks
        moved = schedule.kind in _MOVED
        self._contributors = 1 if moved else schedule.p
        whole = f"a chunk: how many of {schedule.p} operands it holds"
        self.words = "a chunk: held or not" if moved else whole

    def hue(self, row: int, column: int) -> int:
        """Return the number of a cell's colour: the chunk's."""
        return column

    def shares(self, cells: Cells) -> dict[tuple[int, int], float]:
        """Return the largest share of the contributions that lies in one value, by chunk."""
        found: dict[tuple[int, int], float] = {}
        for chunk, ranks in cells.values():
            share = len(ranks) / self._contributors
            found[0, chunk] = max(share, found.get((0, chunk), 0.0))
        return found

    def marks(self, message: Message) -> tuple[int, ...]:
        """Return the chunks."""
        return message.chunks

    def label(self, message: Message) -> str:
        """List the chunks, where there are several to tell apart."""
        return listed(message.chunks) if self.columns > 1 else ""


class Operands(Panel):
    """A row per chunk and a cell per rank: whose operands are in a rank's result."""

    def __init__(self, schedule: Schedule) -> None:
        self.rows, self.columns, self.hues = schedule.chunks, schedule.p, schedule.p
        self.words = "an operand, by rank: in the result; half: at hand"

    def hue(self, row: int, column: int) -> int:
        """Return the number of a cell's colour: the operand's."""
        return column

    def shares(self, cells: Cells) -> dict[tuple[int, int], float]:
        """Return 1 for what is in the result, less for what lies beside it."""
        found: dict[tuple[int, int], float] = {}
        for (buffer, _), (chunk, ranks) in cells.items():
            for rank in ranks:
                share = 1.0 if buffer == "output" else _BESIDE
                found[chunk, rank] = max(share, found.get((chunk, rank), 0.0))
        return found

    def marks(self, message: Message) -> tuple[int, ...]:
        """Return the ranks whose operands are in it."""
        return tuple(sorted(frozenset[int]().union(*(ranks for _, ranks in message.values))))

    def label(self, message: Message) -> str:
        """List the operands; before them the chunks, where there are several."""
        operands = listed(self.marks(message))
        return operands if self.rows == 1 else f"{listed(message.chunks)}: {operands}"


class Blocks(Panel):
    """A row per source, a column per destination: a rank has a row and is to get a column."""

    def __init__(self, schedule: Schedule) -> None:
        self.rows = self.columns = self.hues = schedule.p
        self.words = "a block, by source (row) and destination: in the result; half: at hand"

    def hue(self, row: int, column: int) -> int:
        """Return the number of a cell's colour: the source's."""
        return row

    def shares(self, cells: Cells) -> dict[tuple[int, int], float]:
        """Return 1 for the blocks of the result, less for what lies beside it."""
        found: dict[tuple[int, int], float] = {}
        for (buffer, _), (chunk, _) in cells.items():
            share = 1.0 if buffer == "output" else _BESIDE
            place = divmod(chunk, self.rows)
            found[place] = max(share, found.get(place, 0.0))
        return found

    def marks(self, message: Message) -> tuple[int, ...]:
        """Return the sources."""
        return tuple(sorted({chunk // self.rows for chunk in message.chunks}))

    def label(self, message: Message) -> str:
        """Name the blocks, or say how many there are."""
        if len(message.chunks) > _LISTED:
            return f"{len(message.chunks)} blocks"
        pairs = (divmod(chunk, self.rows) for chunk in message.chunks)
        return ",".join(f"{source}\u2192{destination}" for source, destination in pairs)


def panel_of(schedule: Schedule) -> Panel:
    """Return the picture that suits a collective."""
    if schedule.kind == "alltoall":
        return Blocks(schedule)
    return Operands(schedule) if schedule.kind in ("scan", "exscan") else Chunks(schedule)


def listed(numbers: Iterable[int]) -> str:
    """Write runs of numbers short: 0-3, 6."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}\u2013{run[-1]}" for run in runs]
    return ",".join(words if len(words) <= 3 else [*words[:2], "\u2026"])
