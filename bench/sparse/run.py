# SPDX-License-Identifier: Apache-2.0
"""A whole run: teams on this machine or in shaped hosts, problems in rounds of a block each."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.hosts.teams import HostTeam
from bench.peers.libraries import LIBRARIES, OURS, TeamName
from bench.peers.teams import Team, TeamError
from bench.peers.venvs import python_of
from bench.sparse.cells import DENSE_ARRAY, Entry, Record
from bench.sparse.supports import Problem
from tests.hosts import Hosts

MODULES = {"ours": "ours", "gloo": "gloo", "mpich": "mpi", "openmpi": "mpi", "impi": "mpi"}
WAYS = {OURS: "sparse", "gloo": "torch", "mpich": "single", "openmpi": "single", "impi": "single"}
BLOCK_S = {True: 0.8, False: 0.25}  # seconds of a block: on links whose buckets drain, or not
DRAIN_SHARE = 4
MOST_CALLS = {True: 400, False: 60}
SLOW = 25.0  # who takes so many times as long as ours is measured once only


@dataclass(frozen=True)
class Wish:
    """What is measured."""

    problems: Sequence[Problem]
    entries: Sequence[Entry]
    rounds: int
    mbit: float  # of each host's link; 0: ranks of this machine


def measure(
    wish: Wish, records: list[Record], steps: dict[str, float], say: Callable[[str], None]
) -> None:
    """Measure all problems into `records`, and the seconds of an 8-byte step, by ranks.

    Raises:
        TeamError: a team is lost.
        VenvError: a peer could not be installed.
        RuntimeError: hosts could not be made.
    """
    for ranks in dict.fromkeys(problem.ranks for problem in wish.problems):
        with _teams(wish, ranks) as (teams, hosts):
            steps[str(ranks)] = _step(teams[OURS], ranks, hosts is not None)
            for problem in wish.problems:
                if problem.ranks == ranks:
                    record = Record(problem)
                    records.append(record)
                    _rounds(wish, record, teams, hosts)
                    say(f"{problem}: {wish.rounds} rounds")


@contextmanager
def _teams(wish: Wish, ranks: int) -> Iterator[tuple[dict[str, Team], Hosts | None]]:
    libraries = list(dict.fromkeys(entry.library for entry in wish.entries))
    pythons = {name: python_of(LIBRARIES[name]) for name in libraries}
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(ranks, mbit=wish.mbit)) if wish.mbit else None
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        teams: dict[str, Team] = {}
        for name in libraries:
            of, module = TeamName(name, WAYS[name]), f"bench.sparse.ranks.{MODULES[name]}"
            team = (
                HostTeam(of, ranks, module, hosts=list(hosts))
                if hosts is not None
                else Team(of, ranks, module)
            )
            team.start(pythons[name], Path(folder))
            stack.callback(team.close)
            teams[name] = team
        for team in teams.values():
            team.meet()
        yield teams, hosts


def _step(team: Team, ranks: int, linked: bool) -> float:
    """Return the seconds of one step of 8 bytes."""
    team.prepare(Problem("uniform", 1000, 0.01, ranks).words(), "small", 0)
    if linked:
        return median(team.flow(200, 50).seconds for _ in range(5))
    return float(median(team.measure(200, 20).durations))


def _rounds(wish: Wish, record: Record, teams: dict[str, Team], hosts: Hosts | None) -> None:
    calls: dict[Entry, int] = {}
    linked = hosts is not None
    for turn in range(wish.rounds):
        present = [e for e in wish.entries if e.library in teams and e not in record.left_out]
        at = turn % max(len(present), 1)
        for entry in present[at:] + present[:at]:
            team = teams[entry.library]
            try:
                team.prepare(record.problem.words(), entry.way, 0)
                if entry not in calls:
                    calls[entry] = _calls(team, linked)
                _block(record, entry, turn, calls[entry], team, hosts)
            except TeamError as error:
                if entry.library == OURS:
                    raise
                record.left_out[entry] = str(error)
                teams.pop(entry.library, None)
                continue
            _leave_out_slow(record, entry)


def _calls(team: Team, linked: bool) -> int:
    """Return how many calls make a block."""
    pilot = team.flow(2, 1).seconds if linked else float(median(team.measure(3, 1).durations))
    return max(min(math.ceil(BLOCK_S[linked] / pilot), MOST_CALLS[linked]), 3)


def _block(
    record: Record, entry: Entry, turn: int, calls: int, team: Team, hosts: Hosts | None
) -> None:
    if hosts is None:
        result = team.measure(calls, 1)
        seconds, wrong = float(median(result.durations)), result.wrong
    else:
        drain = math.ceil(calls / DRAIN_SHARE)
        with ExitStack() as links:
            counted = [links.enter_context(host.counted()) for host in hosts]
            flow = team.flow(calls, drain)
        seconds, wrong = flow.seconds, flow.wrong
        most = max(traffic.sent_bytes for traffic in counted)
        record.counted.setdefault(entry, []).append(most / (calls + drain))
    record.add(entry, turn, seconds)
    if wrong:
        record.wrong[entry] = record.wrong.get(entry, 0) + wrong


def _leave_out_slow(record: Record, entry: Entry) -> None:
    """One block of who is far behind says enough."""
    ours = [t for e in record.of(OURS) if e.way != DENSE_ARRAY and (t := record.time(e))]
    its = record.time(entry)
    if ours and its is not None and its > SLOW * min(ours) and entry != record.auto():
        record.left_out[entry] = f"after one block: {its / min(ours):.0f} times as long as ours"
