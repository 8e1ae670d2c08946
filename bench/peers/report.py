# SPDX-License-Identifier: Apache-2.0
"""What was measured as tables, for a terminal or as Markdown, and as a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.peers.cells import PLACEMENTS, Cell, Record, Sheet
from bench.peers.goals import NOT_MEASURED, Judged
from bench.peers.libraries import LIBRARIES, PEERS, TeamName
from bench.peers.statistics import MISSED, UNDECIDED, Estimate
from bench.record import save
from collectives.cli.sizes import format_size

_LIMITS = {
    "line": "line ns", "yield": "sched_yield ns", "copy": "copy GB/s",
    "streaming": "non-temporal copy GB/s", "peer": "read of the peer's GB/s",
}  # fmt: skip
_WIDE = 240  # columns of a file, which has no edge to wrap at
_COLOURS = {"met": "green", "missed": "red", "undecided": "yellow", "incomplete": "yellow"}


@dataclass
class Results:
    """A run, or several read together. `lost`: teams that failed, and why."""

    records: list[Record] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the run and the machine's facts as JSON."""
        cells = [record.as_json() for record in self.records]
        save(path, {"versions": self.versions, "lost": self.lost, "cells": cells})

    @classmethod
    def read(cls, paths: Sequence[Path]) -> Results:
        """Read runs; of a cell that several have, the last one counts."""
        found, cells = cls(), dict[Cell, Record]()
        for path in paths:
            document = json.loads(path.read_text(encoding="utf-8"))
            found.machine = document["machine"]
            found.versions |= document["versions"]
            found.lost |= document["lost"]
            for values in document["cells"]:
                record = Record.from_json(values)
                cells[record.cell] = record
        found.records = list(cells.values())
        return found


@dataclass
class Text:
    """A table: heads, and rows of text. The columns from the second on are numbers."""

    title: str
    heads: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Return it as Markdown."""
        if not self.rows:
            return f"**{self.title}**\n"
        rule = ["---", *["--:" for _ in self.heads[1:]]]
        lines = [f"| {' | '.join(line)} |" for line in (self.heads, rule, *self.rows)]
        return "\n".join([f"**{self.title}**", "", *lines, ""])

    def show(self) -> None:
        """Print it, as wide as it is where no terminal bounds it."""
        screen = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)
        screen.print(self.title, style="bold")
        table = Table(box=None, pad_edge=False, header_style="bold")
        for index, head in enumerate(self.heads):
            table.add_column(head, justify="right" if index else "left")
        for row in self.rows:
            colour = _COLOURS.get(row[-1], "") if row else ""
            table.add_row(*row[:-1], f"[{colour}]{row[-1]}[/]" if colour else row[-1])
        if self.rows:
            screen.print(table)
        screen.print()


def tables(records: Sequence[Record]) -> Iterator[Text]:
    """Return two tables per collective, dtype, number of ranks and placement: times and limits."""
    ordered = sorted(records, key=lambda record: record.cell)
    for (kind, dtype, ranks), group in groupby(
        ordered, lambda record: (record.cell.kind, record.cell.dtype, record.cell.ranks)
    ):
        several = list(group)
        for place in PLACEMENTS:
            sheets = [(record.cell.nbytes, record.sheets[place]) for record in several]
            measured = [(nbytes, sheet) for nbytes, sheet in sheets if sheet.blocks]
            title = f"{kind} of {dtype}, {ranks} ranks, {place}"
            if measured:
                yield _times(title, measured)
                yield _limits(measured)
            else:
                sought = max(record.seconds for record in several)
                yield Text(f"{title}: not seen in {sought:.0f} s", [], [])


def goals(judged: Sequence[Judged]) -> Text:
    """Return the table of goals; those that nothing was measured for are only counted."""
    heads = ["goal: reference over our time", "placement", "sizes", "lowest ratio", "asked",
             "geometric mean", "asked", "missed at", "undecided at", "verdict"]  # fmt: skip
    measured = [row for row in judged if row.verdict != NOT_MEASURED]
    rows = []
    for row in measured:
        goal, lowest = row.goal, row.lowest
        mean = goal.mean[PLACEMENTS.index(row.placement)] if goal.mean and row.mean else None
        rows.append([
            goal.title,
            row.placement,
            f"{row.sizes}/{len(goal.cells())}",
            f"{interval(lowest.ratio)} at {format_size(lowest.nbytes)}" if lowest else "",
            number(lowest.asked) if lowest else "",
            interval(row.mean),
            number(mean),
            " ".join(format_size(size) for size in row.at(MISSED)),
            " ".join(format_size(size) for size in row.at(UNDECIDED)),
            row.verdict,
        ])  # fmt: skip
    title = f"Goals ({len(judged) - len(measured)} of {len(judged)} not measured in this run)"
    return Text(title, heads, rows)


def interval(found: Estimate | None) -> str:
    """Write an estimate with its interval; a question mark where it is wide."""
    if found is None:
        return ""
    mark = " ?" if found.wide else ""
    return f"{number(found.value)} [{number(found.low)}, {number(found.high)}]{mark}"


def number(value: float | None) -> str:
    """Three significant digits without an exponent."""
    if value is None:
        return ""
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{decimals}f}"


def _times(title: str, measured: Sequence[tuple[int, Sheet]]) -> Text:
    variants = sorted({team for _, sheet in measured for team in sheet.variants()}, key=str)
    peers = [name for name in PEERS if any(name in sheet.libraries() for _, sheet in measured)]
    heads = ["bytes", "rounds"]
    for variant in variants:
        heads += [f"{variant.way} us", "best peer / it"]
    heads += ["best peer", *(f"{LIBRARIES[name].title} us" for name in peers), "A/A"]
    rows = [[format_size(nbytes), *_row(sheet, variants, peers)] for nbytes, sheet in measured]
    return Text(title, heads, rows)


def _row(sheet: Sheet, variants: Sequence[TeamName], peers: Sequence[str]) -> list[str]:
    rival = sheet.rival()
    row = [str(max(len(blocks) for blocks in sheet.blocks.values()))]
    for variant in variants:
        row += [number(sheet.time(variant)), interval(sheet.ratio(rival, variant))]
    row.append(str(rival) if rival is not None else "none")
    for name in peers:
        best = sheet.best([name])
        row.append(number(sheet.time(best)) if best is not None else "")
    return [*row, interval(sheet.against_itself())]


def _limits(measured: Sequence[tuple[int, Sheet]]) -> Text:
    heads = ["bytes", *_LIMITS.values()]
    rows = [
        [format_size(nbytes), *(number(sheet.limit(name)) for name in _LIMITS)]
        for nbytes, sheet in measured
    ]
    return Text("Limits of the machine, probed between the blocks", heads, rows)
