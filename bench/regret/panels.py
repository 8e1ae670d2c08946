# SPDX-License-Identifier: Apache-2.0
"""What a picture of one collective on one job shows: scales, points, and the path of choices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.regret.document import WAYS, Row, Team
from collectives.cli.sizes import format_size

TITLES = {"tuned": "table", "rule": "rule", "model": "model", "best": "best"}
# Okabe and Ito's colours: told apart by all kinds of colour vision.
COLOURS = {"tuned": "#0072B2", "rule": "#D55E00", "model": "#009E73"}
HUES = (210, 30, 150, 280, 55, 340, 185, 95, 245, 5)  # of algorithms in a path
# What is asked of single points: of sizes that were tuned, and of others.
LINES = ((1.10, "p99 1.10"), (1.20, "max 1.20"), (1.30, "held out 1.30"))
_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5, 2, 3, 4, 6, 10, 20, 50, 100)
_MARGIN = 1.7  # times the longest vector, to the edge
_LEAST_TOP, _LEAST_BOTTOM = 1.36, 0.93


@dataclass(frozen=True)
class Block:
    """A stretch of a path: the same choice from ``begin`` to ``end`` bytes."""

    begin: float
    end: float
    choice: str

    @property
    def algorithm(self) -> str:
        """Its name."""
        return self.choice.partition(", ")[0]

    @property
    def parameters(self) -> str:
        """How its messages travel, in short."""
        words = self.choice.split(", ")[1:]
        return " ".join(_short(word) for word in words)

    @property
    def brief(self) -> str:
        """What of these matters most: the length of a tile, else the mode."""
        words = self.parameters.split()
        return words[-1] if "/" in words else "".join(words[:1])

    def lines(self, room: float) -> tuple[str, str]:
        """Return its name and parameters, each as far as there is room for its letters."""
        name = self.algorithm if len(self.algorithm) <= room else ""
        fitting = (words for words in (self.parameters, self.brief) if len(words) <= room)
        return name, next(fitting, "")


def _short(word: str) -> str:
    tile = word.removeprefix("tiles of ")
    return f"/ {format_size(int(tile))}" if tile != word and tile.isdecimal() else word


@dataclass(frozen=True)
class Panel:
    """One collective on one job, its rows by size."""

    kind: str
    team: Team
    rows: tuple[Row, ...]

    @property
    def ways(self) -> list[str]:
        """Return who chose in any of the rows."""
        return [way for way in WAYS if any(way in row.ways for row in self.rows)]

    @property
    def least(self) -> float:
        """Bytes at the left edge."""
        return self.rows[0].nbytes / _MARGIN

    @property
    def most(self) -> float:
        """Bytes at the right edge."""
        return self.rows[-1].nbytes * _MARGIN

    @property
    def low(self) -> float:
        """The ratio at the bottom."""
        return min(_LEAST_BOTTOM, *(ratio / 1.03 for ratio in self._ratios()))

    @property
    def high(self) -> float:
        """The ratio at the top."""
        return max(_LEAST_TOP, *(ratio * 1.06 for ratio in self._ratios()))

    def _ratios(self) -> list[float]:
        return [1.0, *(one.ratio for row in self.rows for one in row.ways.values())]

    def ticks(self) -> list[float]:
        """Return ratios to name: fewer where there are many octaves."""
        wide = self.high / self.low > 3
        skipped = {0.6, 0.8, 0.9, 1.1, 1.3} if wide else set()
        return [t for t in _TICKS if self.low <= t <= self.high and t not in skipped]

    def sizes(self) -> list[int]:
        """Return the powers of eight that lie between the edges; of a narrow panel, of two."""
        first, last = math.ceil(math.log2(self.least)), math.floor(math.log2(self.most))
        powers = range(max(first, 0), last + 1)
        spread = [n for n in powers if n % 3 == 0] if last - first > 6 else list(powers)
        return [1 << n for n in spread]

    def path(self, way: str) -> list[Block]:
        """Return the choices of one way ("best": of run A), each from half way to its neighbour."""
        blocks: list[Block] = []
        for row, (begin, end) in zip(self.rows, self._stretches(), strict=True):
            choice = row.best if way == "best" else row.ways[way].choice if way in row.ways else ""
            if blocks and blocks[-1].choice == choice and blocks[-1].end == begin:
                blocks[-1] = Block(blocks[-1].begin, end, choice)
            elif choice:
                blocks.append(Block(begin, end, choice))
        return blocks

    def _stretches(self) -> Iterator[tuple[float, float]]:
        sizes = [row.nbytes for row in self.rows]
        middles = [math.sqrt(a * b) for a, b in pairwise(sizes)]
        edges = [self.least, *middles, self.most]
        yield from pairwise(edges)


def panels(teams: Sequence[Team]) -> dict[str, list[Panel]]:
    """Return the panels of each collective, in the order in which the jobs have them."""
    kinds = dict.fromkeys(row.kind for team in teams for row in team.rows)
    found: dict[str, list[Panel]] = {kind: [] for kind in kinds}
    for team in teams:
        for kind in kinds:
            rows = sorted((r for r in team.rows if r.kind == kind), key=lambda r: r.nbytes)
            if rows:
                found[kind].append(Panel(kind, team, tuple(rows)))
    return found


def algorithms(of_kind: Sequence[Panel]) -> list[str]:
    """Return the algorithms that any path of a collective shows: each has its colour."""
    names = {
        block.algorithm
        for panel in of_kind
        for way in ("best", *panel.ways)
        for block in panel.path(way)
    }
    return sorted(names)
