# SPDX-License-Identifier: Apache-2.0
"""What is measured and what came out: a cell, its sheets (one per placement), and their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.peers.libraries import AGAIN, OURS, TeamName
from bench.peers.statistics import Estimate, Values, estimate, paired

PLACEMENTS = ("near", "far")


@dataclass(frozen=True, order=True)
class Cell:
    """One collective on one size of vector, among `ranks` ranks."""

    kind: str
    dtype: str
    ranks: int
    nbytes: int

    def __str__(self) -> str:
        return f"{self.kind} {self.dtype} {self.nbytes} B, {self.ranks} ranks"


@dataclass
class Sheet:
    """The blocks of a cell in one placement.

    `blocks`: by team, the median microseconds of a call by number of the round. `limits`: by name,
    what was probed: "line" and "yield" in ns, "copy", "streaming" and "peer" in GB/s. `flows`: as
    `blocks`, of calls back to back, where a goal asks for them. `floors`: by the name of a loop
    written by hand, the microseconds of its blocks.
    """

    blocks: dict[TeamName, dict[int, float]] = field(default_factory=dict)
    limits: dict[str, list[float]] = field(default_factory=dict)
    flows: dict[TeamName, dict[int, float]] = field(default_factory=dict)
    floors: dict[str, list[float]] = field(default_factory=dict)

    def add(self, team: TeamName, turn: int, microseconds: float) -> None:
        """Enter a block."""
        self.blocks.setdefault(team, {})[turn] = microseconds

    def probe(self, limit: str, value: float) -> None:
        """Enter what was probed."""
        self.limits.setdefault(limit, []).append(value)

    def limit(self, name: str) -> float | None:
        """Return the median of a limit."""
        return median(self.limits[name]) if self.limits.get(name) else None

    def probe_floor(self, ways: dict[str, float]) -> None:
        """Enter a block of loops written by hand."""
        for way, microseconds in ways.items():
            self.floors.setdefault(way, []).append(microseconds)

    def floor_blocks(self) -> int:
        """Return how many blocks there are of such loops."""
        return max(map(len, self.floors.values()), default=0)

    def floor(self) -> float | None:
        """Return the microseconds of the loop whose median is the least."""
        return min(map(median, self.floors.values()), default=None)

    def time(self, team: TeamName) -> float | None:
        """Return the median over blocks, in microseconds."""
        return median(self.blocks[team].values()) if self.blocks.get(team) else None

    def best(self, libraries: Sequence[str]) -> TeamName | None:
        """Return the fastest team of the libraries, each at its best thread level."""
        timed = {
            team: time
            for team in self.blocks
            if team.library in libraries and not team.copy and (time := self.time(team)) is not None
        }
        return min(timed, key=timed.__getitem__, default=None)

    def rival(self) -> TeamName | None:
        """Return the fastest of all peers."""
        return self.best([name for name in self.libraries() if name != OURS])

    def libraries(self) -> list[str]:
        """Return the libraries that were measured."""
        return list(dict.fromkeys(team.library for team in self.blocks))

    def variants(self) -> list[TeamName]:
        """Return our teams but the second one."""
        return sorted(
            (team for team in self.blocks if team.library == OURS and not team.copy), key=str
        )

    def ratios(self, peer: TeamName, ours: TeamName) -> Values:
        """Return peer/ours of every round that has both."""
        return paired(self.blocks.get(peer, {}), self.blocks.get(ours, {}))

    def ratio(self, peer: TeamName | None, ours: TeamName) -> Estimate | None:
        """Return the median ratio, above 1 where ours is faster; None without a common round."""
        if peer is None:
            return None
        values = self.ratios(peer, ours)
        return estimate(values) if len(values) else None

    def against_itself(self) -> Estimate | None:
        """Return the second team of ours over the first: 1, but for noise."""
        for team in self.blocks:
            if team.copy == AGAIN:
                return self.ratio(team, TeamName(team.library, team.way))
        return None


@dataclass
class Record:
    """All that is known of a cell.

    `refused`: by team, what the library said. `wrong`: by team, elements. `tries`: rounds begun.
    `seconds`: for which the cores were looked at, to measure it wherever they are.
    """

    cell: Cell
    sheets: dict[str, Sheet] = field(default_factory=lambda: {p: Sheet() for p in PLACEMENTS})
    refused: dict[TeamName, str] = field(default_factory=dict)
    wrong: dict[TeamName, int] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PLACEMENTS, 0))
    seconds: float = 0.0

    @property
    def turn(self) -> int:
        """The number of the present round."""
        return sum(self.tries.values())

    def add_wrong(self, team: TeamName, elements: int) -> None:
        """Count elements that were not what they must be."""
        if elements:
            self.wrong[team] = self.wrong.get(team, 0) + elements

    def as_json(self) -> dict[str, Any]:
        """Plain values: of limits the median, of a team's blocks a line ``round us, ...``."""
        return {
            **vars(self.cell),
            "seconds": round(self.seconds),
            "refused": {str(team): why for team, why in self.refused.items()},
            "wrong": {str(team): count for team, count in self.wrong.items()},
            "sheets": {
                place: {
                    "limits": _medians(sheet.limits),
                    "blocks": _lines(sheet.blocks),
                    **({"flows": _lines(sheet.flows)} if sheet.flows else {}),
                    **({"floors": _medians(sheet.floors)} if sheet.floors else {}),
                }
                for place, sheet in self.sheets.items()
            },
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Record:
        """Read what ``as_json`` wrote."""
        cell = Cell(values["kind"], values["dtype"], values["ranks"], values["nbytes"])
        record = cls(cell)
        record.seconds = values.get("seconds", 0.0)
        record.refused = {TeamName.read(team): why for team, why in values["refused"].items()}
        record.wrong = {TeamName.read(team): count for team, count in values["wrong"].items()}
        for place, written in values["sheets"].items():
            sheet = record.sheets[place]
            sheet.limits = {name: [value] for name, value in written["limits"].items()}
            sheet.blocks = _times(written["blocks"])
            sheet.flows = _times(written.get("flows", {}))
            sheet.floors = {way: [us] for way, us in written.get("floors", {}).items()}
        return record


def _medians(probed: dict[str, list[float]]) -> dict[str, float]:
    return {name: float(f"{median(values):.4g}") for name, values in probed.items()}


def _lines(blocks: dict[TeamName, dict[int, float]]) -> dict[str, str]:
    """Return a line for each team, of ``turn us`` for each block."""
    return {
        str(team): ", ".join(f"{turn} {us:.5g}" for turn, us in times.items())
        for team, times in blocks.items()
    }


def _times(lines: dict[str, str]) -> dict[TeamName, dict[int, float]]:
    """Read what ``_lines`` wrote."""
    blocks = {}
    for team, line in lines.items():
        pairs = [block.split() for block in line.split(", ")]
        blocks[TeamName.read(team)] = {int(turn): float(us) for turn, us in pairs}
    return blocks
