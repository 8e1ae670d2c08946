# SPDX-License-Identifier: Apache-2.0
"""A whole run: hosts made, teams started in them, cells measured in rounds of a block each."""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from bench.hosts.records import Block, Record
from bench.hosts.teams import HostTeam
from bench.peers.cells import Cell
from bench.peers.libraries import LIBRARIES, OURS, TeamName
from bench.peers.teams import Flow, TeamError
from bench.peers.venvs import python_of
from tests.hosts import Hosts

BLOCK = 64 << 20  # bytes of vectors in a block
SMALL, SMALL_S = 64 << 10, 0.3  # below so many bytes a block is so many seconds
MOST_S = 30.0  # for a block of who is very slow
LEAST_CALLS = 3
DRAIN_SHARE = 4  # one call in so many is made before, against full buckets
PILOT = 8  # calls that tell how long a call takes


@dataclass(frozen=True)
class Wish:
    """What is measured."""

    cells: Sequence[Cell]
    teams: Sequence[TeamName]
    hosts: int
    mbit: float
    rounds: int


@dataclass
class Results:
    """What came out. `links`: how they are shaped; `lost`: teams of no more use, and why."""

    records: list[Record] = field(default_factory=list)
    links: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "links": self.links,
            "versions": self.versions,
            "lost": self.lost,
            "cells": [record.json() for record in self.records],
        }


def calls_of(nbytes: int, seconds: float) -> int:
    """Return how many calls make a block, where one takes about so many seconds."""
    wanted = math.ceil(BLOCK / nbytes if nbytes >= SMALL else SMALL_S / seconds)
    return max(min(wanted, math.ceil(MOST_S / seconds)), LEAST_CALLS)


def drain_of(calls: int) -> int:
    """Return how many calls go before those of a block."""
    return math.ceil(calls / DRAIN_SHARE)


def measure(wish: Wish, results: Results, say: Callable[[str], None]) -> None:
    """Measure all cells into `results`, which also half a run has filled.

    Raises:
        TeamError: our own team is lost.
        VenvError: a peer could not be installed.
        RuntimeError: hosts could not be made.
    """
    pythons = {team.library: python_of(LIBRARIES[team.library]) for team in wish.teams}
    with Hosts(wish.hosts, mbit=wish.mbit) as hosts:
        results.links = links(hosts, wish.mbit)
        with _started(wish.teams, hosts, pythons, results, say) as teams:
            for cell in wish.cells:
                record = Record(cell, wish.mbit)
                results.records.append(record)
                Sitting(record, hosts, teams, results.lost, say).rounds(wish.rounds)


def links(hosts: Hosts, mbit: float) -> dict[str, Any]:
    """Return how the links are shaped, as the kernel says."""
    shape = hosts[0].shapes()[0]
    assert shape is not None
    control = hosts[0].run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).strip()
    return {
        "hosts": len(hosts),
        "mbit": mbit,
        "bucket": shape.bucket,
        "queue_ms": shape.queue_ms,
        "congestion": control,
    }


@contextmanager
def _started(
    names: Sequence[TeamName],
    hosts: Hosts,
    pythons: dict[str, Path],
    results: Results,
    say: Callable[[str], None],
) -> Iterator[list[Measured]]:
    """Start the teams and end them. A peer that does not start is left out and named."""
    begun: list[HostTeam] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            met: list[Measured] = []
            for name in names:
                team = HostTeam(name, len(hosts), hosts=list(hosts))
                team.start(pythons[name.library], Path(folder))
                begun.append(team)
            for team in begun:
                try:
                    team.meet()
                except TeamError as error:
                    _lose(team, error, results.lost, say)
                else:
                    met.append(team)
                    results.versions[team.name.library] = team.version
            yield met
        finally:
            for team in begun:
                team.close()


def _lose(
    team: Measured, error: TeamError, lost: dict[str, str], say: Callable[[str], None]
) -> None:
    """Enter a team that is of no more use; without ours there is nothing to measure."""
    if team.name.library == OURS:
        raise error
    say(str(error))
    lost[str(team.name)] = str(error)


class Measured(Protocol):
    """What a cell is measured of: a team, or one of the ways in which its ranks call."""

    name: TeamName

    def prepare(self, kind: str, dtype: str, nbytes: int) -> str | None:
        """Make a cell the present one; return why that is refused."""

    def flow(self, calls: int, drain: int) -> Flow:
        """Measure calls right behind others."""

    def close(self) -> None:
        """Leave nothing behind."""


class Sitting:
    """The rounds of one cell."""

    def __init__(
        self,
        record: Record,
        hosts: Hosts,
        teams: list[Measured],
        lost: dict[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._record = record
        self._hosts = hosts
        self._teams = teams
        self._lost = lost
        self._say = say
        self._calls: dict[TeamName, int] = {}

    def rounds(self, count: int) -> None:
        """Measure a block of every team in every round; who begins changes."""
        for team in list(self._teams):
            self._with(team, self._prepare)
        for turn in range(count):
            present = [team for team in self._teams if team.name in self._calls]
            at = turn % max(len(present), 1)
            for team in present[at:] + present[:at]:
                self._with(team, partial(self._block, turn))
        self._say(f"{self._record.cell}: {count} rounds")

    def _with(self, team: Measured, act: Callable[[Measured], None]) -> None:
        try:
            act(team)
        except TeamError as error:
            self._teams.remove(team)
            self._calls.pop(team.name, None)
            _lose(team, error, self._lost, self._say)
            team.close()

    def _prepare(self, team: Measured) -> None:
        cell = self._record.cell
        refused = team.prepare(cell.kind, cell.dtype, cell.nbytes)
        if refused is not None:
            self._record.refused[team.name] = refused
            return
        pilot = team.flow(PILOT if cell.nbytes < BLOCK // PILOT else 1, 1)
        if cell.nbytes < SMALL:  # so few say little of small ones
            pilot = team.flow(calls_of(cell.nbytes, 10 * pilot.seconds), 1)
        self._calls[team.name] = calls_of(cell.nbytes, pilot.seconds)

    def _block(self, turn: int, team: Measured) -> None:
        calls = self._calls[team.name]
        drain = drain_of(calls)
        with ExitStack() as links:
            counted = [links.enter_context(host.counted()) for host in self._hosts]
            flow = team.flow(calls, drain)
        sent = sum(traffic.sent_bytes for traffic in counted)
        # One more call was made to check its result.
        self._record.add(team.name, turn, Block(flow.seconds, drain + calls + 1, sent), flow.wrong)


def say(sentence: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {sentence}\n")
