# SPDX-License-Identifier: Apache-2.0
"""A whole run: teams started, cells measured, results written."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.peers.cells import Cell
from bench.peers.libraries import LIBRARIES, OURS, TeamName
from bench.peers.machine import Machine
from bench.peers.report import Results
from bench.peers.rounds import Effort, Session
from bench.peers.teams import Team, TeamError
from bench.peers.venvs import python_of


@dataclass(frozen=True)
class Wish:
    """What is measured. `starts`: how often the teams of each number of ranks are made anew."""

    cells: Sequence[Cell]
    teams: Sequence[TeamName]
    effort: Effort
    starts: int
    output: Path


def measured(wish: Wish) -> Results:
    """Measure, one number of ranks after the other; write the results, also of half a run."""
    pythons = {name: python_of(LIBRARIES[name]) for name in {t.library for t in wish.teams}}
    begin, results = time.monotonic(), Results()
    counts = list(dict.fromkeys(cell.ranks for cell in wish.cells))
    try:
        with Machine() as machine:
            for index, ranks in enumerate(counts):
                left = max(wish.effort.seconds - (time.monotonic() - begin), 0.0)
                effort = replace(wish.effort, seconds=left / (len(counts) - index))
                cells = [cell for cell in wish.cells if cell.ranks == ranks]
                session = Session(cells, machine, effort, say)
                results.records += session.records
                # Once for each share of the rounds, and as often for ratios that stay wide.
                for start in range(1, 2 * wish.starts + 1):
                    share = start / wish.starts
                    if session.wants(share):
                        with _started(wish.teams, ranks, pythons, results) as teams:
                            session.run(teams, share)
                results.lost |= {str(team): why for team, why in session.lost.items()}
    finally:
        if results.records:
            results.write(wish.output)
    return results


@contextmanager
def _started(
    names: Sequence[TeamName], ranks: int, pythons: dict[str, Path], results: Results
) -> Iterator[list[Team]]:
    """Start the teams and end them. A peer that does not start is left out and named."""
    teams = [Team(name, ranks) for name in names]
    begun: list[Team] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for team in teams:
                team.start(pythons[team.name.library], Path(folder))
                begun.append(team)
            yield [team for team in begun if _has_met(team, results)]
        finally:
            for team in begun:
                team.close()


def _has_met(team: Team, results: Results) -> bool:
    try:
        team.meet()
    except TeamError as error:
        if team.name.library == OURS:
            raise
        say(str(error))
        results.lost[str(team.name)] = str(error)
        return False
    results.versions[team.name.library] = team.version
    return True


def say(sentence: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {sentence}\n")
