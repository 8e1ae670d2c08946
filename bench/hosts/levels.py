# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.hosts.levels``: 2 hosts of 2 and of 4 ranks, our choice beside flat algorithms.

All ways of allreduce are called by the same ranks, in turns within a round: by the library's own
choice, which knows hosts, and by each algorithm of the table, which does not. What hosts exchange
is counted on their links.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import collectives as cl
from bench.hosts.goals import MBIT, M
from bench.hosts.records import Record
from bench.hosts.run import Sitting, links, say
from bench.hosts.teams import HostTeam
from bench.hosts.verdicts import Goal, Row, failed, finish, options, positive
from bench.peers.cells import Cell
from bench.peers.libraries import OURS, TeamName
from bench.peers.teams import Flow, TeamError
from tests.hosts import Hosts
from tests.hosts.tools import missing

PROGRAM = "bench.hosts.levels"
HOSTS, EACH = 2, (2, 4)
AUTOMATIC, FLAT = TeamName(OURS, "automatic"), "flat"
RING = TeamName(FLAT, "ring")
OVER_RING = {2: Goal(1.4), 4: Goal(1.6)}  # by ranks of a host
OVER_BEST, TRAFFIC = Goal(0.97), Goal(1.08, most=True)
SLOW = 2.0  # rings; slower ones are tried once, since they cannot be the best


@dataclass
class LevelTeam(HostTeam):
    """Ranks that call by the algorithm that was named last."""

    module: str = "bench.hosts.ranks.levels"

    def choose(self, algorithm: str | None) -> None:
        """Name it; None: the library's choice."""
        self._ask({"order": "choose", "algorithm": algorithm})


@dataclass
class Way:
    """The team's calls by one algorithm."""

    name: TeamName
    team: LevelTeam

    def _choose(self) -> None:
        self.team.choose(None if self.name == AUTOMATIC else self.name.way)

    def prepare(self, kind: str, dtype: str, nbytes: int) -> str | None:
        """Make a cell the present one."""
        self._choose()
        return self.team.prepare(kind, dtype, nbytes)

    def flow(self, calls: int, drain: int) -> Flow:
        """Measure calls right behind others."""
        self._choose()
        return self.team.flow(calls, drain)

    def close(self) -> None:
        """Leave the team to those who call in other ways."""


@dataclass
class Level:
    """Hosts of `each` ranks and what was measured. `tried`: seconds of the call made first."""

    each: int
    record: Record
    tried: dict[str, float] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"each": self.each, "tried": self.tried, **self.record.json()}


def ways(ranks: int) -> list[TeamName]:
    """Return our choice and all flat algorithms for so many ranks."""
    flat = [one.name for one in cl.algorithms("allreduce") if one.fits(ranks)]
    return [AUTOMATIC, *(TeamName(FLAT, name) for name in flat)]


def worth(tried: dict[TeamName, float]) -> list[TeamName]:
    """Return those that are measured further: our choice, the ring, and who is not much slower."""
    limit = SLOW * tried[RING]
    return [way for way, seconds in tried.items() if way == AUTOMATIC or seconds <= limit]


def judge(level: Level) -> list[Row]:
    """Hold a level against its goals. It is void where fewer bytes passed than the lower bound."""
    record, void = level.record, level.record.void()
    wrong, ring_wrong = (record.wrong.get(way, 0) for way in (AUTOMATIC, RING))
    title = f"{HOSTS} hosts x {level.each}"
    asked = OVER_RING.get(level.each) if record.mbit == MBIT else None
    rows = [
        Row(f"{title}: the flat ring over ours", record.over(RING), asked, void, ring_wrong),
        Row(f"{title}: the best flat of a round over ours", record.ratio(), OVER_BEST, void),
        Row(
            f"{title}: bytes between hosts over the bound", record.traffic(AUTOMATIC), TRAFFIC, void
        ),
        Row(f"{title}: share of the link", record.share(AUTOMATIC), wrong=wrong),
    ]
    for way in record.blocks:
        if way not in (AUTOMATIC, RING):
            over, bad = record.over(way), record.wrong.get(way, 0)
            rows.append(Row(f"{title}: {way.way} over ours", over, wrong=bad))
    return rows


def measure(
    each: int, mbit: float, nbytes: int, rounds: int, say: Callable[[str], None]
) -> tuple[Level, dict[str, Any]]:
    """Measure hosts of `each` ranks; return that and how the links were shaped."""
    level = Level(each, Record(Cell("allreduce", "float32", HOSTS, nbytes), mbit))
    with Hosts(HOSTS, mbit=mbit) as hosts, tempfile.TemporaryDirectory() as folder:
        places = [host for host in hosts for _ in range(each)]
        team = LevelTeam(TeamName(OURS, "levels"), len(places), hosts=places)
        try:
            team.start(Path(sys.executable), Path(folder))
            team.meet()
            tried = {name: _tried(Way(name, team), nbytes) for name in ways(len(places))}
            level.tried = {str(name): seconds for name, seconds in tried.items()}
            chosen = [Way(name, team) for name in worth(tried)]
            say(f"{HOSTS} hosts x {each}: {len(chosen)} of {len(tried)} ways are measured")
            Sitting(level.record, hosts, list(chosen), {}, say).rounds(rounds)
        finally:
            team.close()
        return level, links(hosts, mbit)


def _tried(way: Way, nbytes: int) -> float:
    """Return the seconds of one call behind another one."""
    way.prepare("allreduce", "float32", nbytes)
    return way.flow(1, 1).seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. A wrong result or a void row, or with --strict a missed goal, is 1; a failure is 2."""
    parser = options(PROGRAM, __doc__, "levels.json")
    parser.add_argument("--mbit", type=float, default=MBIT, help=f"of each link ({MBIT:g})")
    parser.add_argument("--mib", type=positive, default=16, help="of the vector (16)")
    parser.add_argument("--each", type=positive, nargs="+", default=EACH, help="ranks of a host")
    chosen = parser.parse_args(arguments)
    if reason := missing():
        return failed(PROGRAM, reason)
    levels, shaped = [], dict[str, Any]()
    try:
        for each in chosen.each:
            level, shaped = measure(each, chosen.mbit, chosen.mib * M, chosen.rounds, say)
            levels.append(level)
    except (TeamError, OSError, RuntimeError) as error:
        return failed(PROGRAM, error)
    rows = [row for level in levels for row in judge(level)]
    title = f"allreduce of {chosen.mib} MiB, links of {chosen.mbit:g} Mbit/s, by times"
    return finish(chosen, title, rows, {"links": shaped, "levels": [one.json() for one in levels]})


if __name__ == "__main__":
    sys.exit(main())
