# SPDX-License-Identifier: Apache-2.0
"""What was measured of a cell, block by block, what it comes to, and when it says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench.peers.cells import Cell
from bench.peers.libraries import OURS, TeamName
from bench.wire.judge import MOST

KINDS = ("allreduce", "reduce_scatter", "allgather")


def payload(cell: Cell) -> float:
    """Return the bytes that each host sends at least in one call, on the average over hosts."""
    once = (cell.ranks - 1) / cell.ranks * cell.nbytes
    return 2 * once if cell.kind == "allreduce" else once


def bound(cell: Cell, mbit: float) -> float:
    """Return the least seconds of a call over links of this rate."""
    return payload(cell) * 8 / (mbit * 1e6)


@dataclass(frozen=True)
class Spread:
    """The median of rounds, and their extremes."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Return that of the values; None without any."""
        return cls(median(values), min(values), max(values), len(values)) if values else None


@dataclass(frozen=True)
class Block:
    """One block of a team.

    `seconds`: of a call; `calls`: all that were made while `counted` bytes passed the hosts' links.
    """

    seconds: float
    calls: int
    counted: int


@dataclass
class Record:
    """A cell on links of `mbit`: blocks by team and round; wrong elements and refusals by team."""

    cell: Cell
    mbit: float
    blocks: dict[TeamName, dict[int, Block]] = field(default_factory=dict)
    wrong: dict[TeamName, int] = field(default_factory=dict)
    refused: dict[TeamName, str] = field(default_factory=dict)

    def add(self, team: TeamName, turn: int, block: Block, wrong: int) -> None:
        """Enter a block."""
        self.blocks.setdefault(team, {})[turn] = block
        if wrong:
            self.wrong[team] = self.wrong.get(team, 0) + wrong

    def ours(self) -> TeamName | None:
        """Return our team, if it was measured."""
        return next((team for team in self.blocks if team.library == OURS), None)

    def voided(self) -> dict[int, str]:
        """Return the rounds that say nothing, and why: more than a link carries was in a bucket."""
        reasons = {}
        for team, blocks in self.blocks.items():
            for turn, block in blocks.items():
                share = self._share(block)
                if share > MOST:
                    reasons[turn] = f"{team} at {share:.3f} of the link, above {MOST}"
        return reasons

    def astray(self) -> list[TeamName]:
        """Return the teams of which fewer bytes than the lower bound passed the links."""
        return [
            team
            for team, blocks in self.blocks.items()
            if any(self._traffic(block) < 1.0 for block in blocks.values())
        ]

    def void(self) -> str | None:
        """Return why nothing of ours counts here, or None."""
        ours = self.ours()
        if ours is None or ours not in self.astray():
            return None
        return f"{self.cell}: fewer bytes on the links than the lower bound of the payload"

    def time(self, team: TeamName) -> Spread | None:
        """Return the seconds of a call."""
        return Spread.of([block.seconds for block in self._valid(team).values()])

    def share(self, team: TeamName) -> Spread | None:
        """Return the share that the lower bound has in the measured time."""
        return Spread.of([self._share(block) for block in self._valid(team).values()])

    def traffic(self, team: TeamName) -> Spread | None:
        """Return the bytes on the links over the lower bound of the payload, of all rounds."""
        return Spread.of([self._traffic(block) for block in self.blocks.get(team, {}).values()])

    def ratio(self) -> Spread | None:
        """Return the time of the best peer of each round over ours in that round."""
        ours, astray = self.ours(), self.astray()
        if ours is None:
            return None
        peers = [self._valid(t) for t in self.blocks if t.library != OURS and t not in astray]
        ratios = []
        for turn, block in self._valid(ours).items():
            times = [blocks[turn].seconds for blocks in peers if turn in blocks]
            if times:
                ratios.append(min(times) / block.seconds)
        return Spread.of(ratios)

    def over(self, team: TeamName) -> Spread | None:
        """Return the time of a team over ours, round by round."""
        ours = self.ours()
        mine = self._valid(ours) if ours is not None else {}
        its = self._valid(team)
        return Spread.of([its[turn].seconds / mine[turn].seconds for turn in its if turn in mine])

    def json(self) -> dict[str, Any]:
        """Return it as plain values."""
        teams = {}
        for team, blocks in self.blocks.items():
            figures = {"share": self.share(team), "traffic": self.traffic(team)}
            teams[str(team)] = {
                **{name: asdict(found) if found else None for name, found in figures.items()},
                "blocks": [{"round": turn, **asdict(block)} for turn, block in blocks.items()],
            }
        ratio = self.ratio()
        return {
            **asdict(self.cell),
            "mbit": self.mbit,
            "teams": teams,
            "best_peer_over_ours": asdict(ratio) if ratio else None,
            "void_rounds": {str(turn): why for turn, why in self.voided().items()},
            "void": self.void(),
            "wrong": {str(team): count for team, count in self.wrong.items()},
            "refused": {str(team): why for team, why in self.refused.items()},
        }

    def _valid(self, team: TeamName) -> dict[int, Block]:
        voided = self.voided()
        blocks = self.blocks.get(team, {})
        return {turn: block for turn, block in blocks.items() if turn not in voided}

    def _share(self, block: Block) -> float:
        return bound(self.cell, self.mbit) / block.seconds

    def _traffic(self, block: Block) -> float:
        return block.counted / (block.calls * self.cell.ranks * payload(self.cell))
