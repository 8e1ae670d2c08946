# SPDX-License-Identifier: Apache-2.0
"""One cell of the regret bench: the best plan of run A against those who choose, in run B.

Run A finds the best plan among all candidates, as tune() does but with more time and without what
it knows of other sizes. Run B races it against what the table chooses, what the rules choose, what
the cost model says is the fastest, and against itself, which shows how far two equal plans lie
apart at this moment. It may be gone back to: what pairs say counts for all visits together.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import collectives as cl
from bench.regret.document import UNDECIDED
from collectives.intervals import of_median
from collectives.machine_costs import MachineCosts
from collectives.machine_probe import measured_costs
from collectives.topology import Topology
from collectives.tuning.candidates import candidates
from collectives.tuning.installed import chosen, install
from collectives.tuning.modelled import agreed
from collectives.tuning.race import Buffers, Race, Runner
from collectives.tuning.table import Choice
from collectives.tuning.tuner import Cell, race_cell

LONG = 1 << 20  # bytes from which on a cell gets more time
MOST_ROUNDS = 2000  # of run B, where the machine is unquiet
PROBE_S = 0.2  # of what the machine costs, before each size: cores of virtual machines move
_AT_A_TIME = 40  # rounds, where a cell is unclear


@dataclass
class Contest:
    """A communicator, and who chooses for it: a table, the rules, a model."""

    comm: cl.Communicator
    table: tuple[Choice, ...] | None
    costs: MachineCosts | Topology | None = None
    predicting: float = 0.0  # seconds, of all choices by the model
    probing: float = 0.0  # and of what it knows

    def probe(self) -> None:
        """Find what the machine costs now. Links of hosts do not change: they are asked for once.

        Every rank must call it.
        """
        begin = time.perf_counter()
        if self.comm.transport == "memory":
            self.costs = measured_costs(self.comm, PROBE_S)
        elif self.costs is None:
            self.costs = self.comm.topology()
        self.probing += time.perf_counter() - begin

    def ways(self, kind: str, nbytes: int, buffers: Buffers) -> dict[str, tuple[Runner, Any]]:
        """Return who chooses, ready to run, and what is told of each choice."""
        comm, made = self.comm, dict[str, tuple[Runner, Any]]()
        if self.table is not None:
            install(comm, self.table)
            by_table, measured = chosen(comm, kind, nbytes)
            runner = Runner(comm, by_table, buffers, self.table)
            made["tuned"] = runner, {"choice": str(by_table), "measured": measured}
        install(comm, [])
        by_rule, _ = chosen(comm, kind, nbytes)
        made["rule"] = Runner(comm, by_rule, buffers, ()), {"choice": str(by_rule)}
        assert self.costs is not None
        begin = time.perf_counter()
        by_model = agreed(comm, self.costs, kind, nbytes)
        took = time.perf_counter() - begin
        self.predicting += took
        runner = Runner(comm, by_model, buffers, None)
        made["model"] = runner, {"choice": str(by_model), "took": took}
        install(comm, [])
        return made


@dataclass
class Meeting:
    """The best plan, itself once more, and what the others chose, ready to be raced.

    ``seconds`` of run A; ``ways``: who chose, and what is told of it.
    """

    kind: str
    nbytes: int
    seconds: float
    best: Runner
    again: Runner
    ways: dict[str, tuple[Runner, Any]]
    race: Race

    def unclear(self) -> bool:
        """Tell whether the best plan differs from itself, as far as is known."""
        same = self._over_best(self.again)
        return same["low"] < 1 - UNDECIDED or same["high"] > 1 + UNDECIDED

    def until_clear(self) -> None:
        """Race on while it is unclear and there is time. Every rank must call it."""
        while self.unclear() and self.rounds < MOST_ROUNDS and self.race.spent < 4 * self.seconds:
            self.race.rounds(_AT_A_TIME)

    @property
    def rounds(self) -> int:
        """How many there were, of all visits."""
        return len(self.race.samples[id(self.best)])

    def row(self) -> dict[str, Any]:
        """Return what was found."""
        comm = self.race.comm
        every = candidates(self.kind, comm.size, self.nbytes, comm.transport == "memory")
        ways = {
            way: {**told, **self._over_best(runner)} for way, (runner, told) in self.ways.items()
        }
        return {
            "kind": self.kind,
            "nbytes": self.nbytes,
            "ranks": comm.size,
            "candidates": [str(choice) for choice in every],
            "best": str(self.best.choice),
            "seconds": self.race.median(self.best),
            **ways,
            "same": self._over_best(self.again),
            "rounds": self.rounds,
        }

    def _over_best(self, runner: Runner) -> dict[str, float]:
        """Return the median of its times over the best one's, pair by pair, and its interval."""
        a, b = (np.array(self.race.samples[id(one)]) for one in (runner, self.best))
        logs = np.log(a / b)
        low, high = of_median(logs)
        found = {"ratio": np.median(logs), "low": low, "high": high}
        return {name: float(np.exp(log)) for name, log in found.items()}


def meeting(contest: Contest, kind: str, nbytes: int, seconds: float) -> Meeting:
    """Find the best plan in about so many seconds, and prepare run B. Every rank must call it."""
    comm = contest.comm
    found = Cell(kind, nbytes)
    seconds *= 3 if nbytes >= LONG else 1
    install(comm, [])
    race_cell(comm, found, None, seconds, comm.transport == "memory", impartial=True)
    buffers = Buffers(kind, nbytes, comm.size)
    best, again = (Runner(comm, found.best, buffers, None) for _ in range(2))
    ways = contest.ways(kind, nbytes, buffers)
    race = Race(comm, [best, again, *(runner for runner, _ in ways.values())], buffers)
    return Meeting(kind, nbytes, seconds, best, again, ways, race)
