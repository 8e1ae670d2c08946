# SPDX-License-Identifier: Apache-2.0
"""One rank of the regret bench: tunes, then finds the best plan of each cell, and races the choice.

Run A finds the best plan among all candidates, as tune() does but with more time and without what
it knows of other sizes. Run B races it against what the table chooses, what the rules choose, what
the cost model says is the fastest, and against itself, which shows how far two equal plans lie
apart at this moment.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import collectives as cl
from bench.regret.document import UNDECIDED
from collectives.cli.worker import pin_to_core
from collectives.environment import place
from collectives.intervals import of_median
from collectives.machine_costs import MachineCosts
from collectives.machine_probe import measured_costs
from collectives.topology import Topology
from collectives.tuning.candidates import candidates
from collectives.tuning.installed import chosen, install
from collectives.tuning.modelled import agreed
from collectives.tuning.race import Buffers, Race, Runner
from collectives.tuning.table import Choice
from collectives.tuning.tuner import Cell, Clock, race_cell

ROUNDS, MOST_ROUNDS = 40, 2000  # of run B: interleaved pairs, more where the machine is unquiet
LONG = 1 << 20  # bytes from which on a cell gets more time
PROBE_S = 0.2  # of what the machine costs, before each size: cores of virtual machines move


@dataclass(frozen=True)
class Job:
    """What the ranks are asked for."""

    kinds: tuple[str, ...]
    tuned: tuple[int, ...]  # sizes that tune() races
    held_out: tuple[int, ...]  # and that it has not seen
    budget: float  # of tune(); 0: there is no table
    cell: float  # seconds of run A for a cell
    limit: float  # seconds after which no cell begins
    pin: bool


@dataclass
class Contest:
    """A communicator, and who chooses for it: a table, the rules, a model."""

    comm: cl.Communicator
    job: Job
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
class Schedule:
    """Which cells there is time for, as all ranks agree: what is too long is left out."""

    clock: Clock
    spent: dict[str, tuple[int, float]] = field(default_factory=dict)  # bytes and seconds, by kind
    before: float = 0.0

    def allows(self, kind: str, nbytes: int) -> bool:
        """Tell whether a cell that takes as long, byte by byte, as the last one is over in time."""
        self.before = self.clock.left()
        last, took = self.spent.get(kind, (nbytes, 0.0))
        return self.before > took * nbytes / last

    def took(self, kind: str, nbytes: int) -> float:
        """Enter a cell that is over; return its seconds."""
        seconds = self.before - self.clock.left()
        self.spent[kind] = nbytes, seconds
        return seconds


def ratio(race: Race, runner: Runner, best: Runner) -> dict[str, float]:
    """Return the median of a runner's times over the best one's, pair by pair, and its interval."""
    a, b = (np.array(race.samples[id(one)]) for one in (runner, best))
    logs = np.log(a / b)
    low, high = of_median(logs)
    return {
        "ratio": float(np.exp(np.median(logs))),
        "low": float(np.exp(low)),
        "high": float(np.exp(high)),
    }


def _unclear(same: dict[str, float]) -> bool:
    return same["low"] < 1 - UNDECIDED or same["high"] > 1 + UNDECIDED


def cell_of(contest: Contest, kind: str, nbytes: int) -> dict[str, Any]:
    """Measure one cell. Every rank must."""
    comm, job = contest.comm, contest.job
    shared = comm.transport == "memory"
    found = Cell(kind, nbytes)
    seconds = job.cell * (3 if nbytes >= LONG else 1)
    install(comm, [])
    race_cell(comm, found, None, seconds, shared, impartial=True)
    buffers = Buffers(kind, nbytes, comm.size)
    best = Runner(comm, found.best, buffers, None)
    again = Runner(comm, found.best, buffers, None)
    ways = contest.ways(kind, nbytes, buffers)
    race = Race(comm, [best, again, *(runner for runner, _ in ways.values())], buffers)
    race.rounds(ROUNDS)
    same = ratio(race, again, best)
    while _unclear(same) and len(race.samples[id(best)]) < MOST_ROUNDS and race.spent < 4 * seconds:
        race.rounds(ROUNDS)
        same = ratio(race, again, best)
    return {
        "kind": kind,
        "nbytes": nbytes,
        "ranks": comm.size,
        "held_out": nbytes in job.held_out,
        "candidates": [str(c) for c in candidates(kind, comm.size, nbytes, shared)],
        "best": str(found.best),
        "seconds": race.median(best),
        **{way: {**told, **ratio(race, runner, best)} for way, (runner, told) in ways.items()},
        "same": same,
        "rounds": len(race.samples[id(best)]),
    }


def _line(row: dict[str, Any]) -> str:
    ways = [
        f"{row[way]['ratio']:6.3f} by {way}" for way in ("tuned", "rule", "model") if way in row
    ]
    return (
        f"{row['kind']:14} {row['nbytes']:>9} {' '.join(ways)}  {row['same']['ratio']:6.3f} itself"
        f"  {row['best']}"
    )


def measured(contest: Contest) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Return the cells, and those that there was no time for."""
    job, comm = contest.job, contest.comm
    schedule = Schedule(Clock(comm, job.limit))
    rows, left_out = list[dict[str, Any]](), list[list[Any]]()
    for nbytes in sorted(job.tuned + job.held_out):
        contest.probe()
        for kind in job.kinds:
            if not schedule.allows(kind, nbytes):
                left_out.append([kind, nbytes])
                continue
            row = cell_of(contest, kind, nbytes)
            rows.append({**row, "took": schedule.took(kind, nbytes)})
            if comm.rank == 0:
                print(_line(rows[-1]), flush=True)
    return rows, left_out


def main(words: str, output: Path) -> None:
    """Run one rank; rank 0 writes what was found."""
    asked = json.loads(words)
    lists: dict[str, Any] = {key: tuple(asked.pop(key)) for key in ("kinds", "tuned", "held_out")}
    job = Job(**lists, **asked)
    if job.pin:
        pin_to_core(place().rank)
    with cl.init(timeout=120) as comm:
        begin = time.perf_counter()
        table = None
        if job.budget > 0:
            table = comm.tune(job.budget, kinds=job.kinds, sizes=job.tuned)
        spent = time.perf_counter() - begin
        with comm.dup() as apart:
            contest = Contest(apart, job, table.choices if table is not None else None)
            rows, left_out = measured(contest)
        if comm.rank == 0:
            found = {
                "transport": comm.transport,
                "tuning_seconds": spent if table is not None else None,
                "table": table.as_json() if table is not None else None,
                "predicting": {
                    "seconds": contest.predicting,
                    "choices": len(rows),
                    "probing_seconds": contest.probing,
                    "costs": _known(contest.costs),
                },
                "cells": rows,
                "left_out": left_out,
            }
            output.write_text(json.dumps(found))


def _known(costs: MachineCosts | Topology | None) -> Any:
    """Return what the model knew, of a machine that which was probed last."""
    if isinstance(costs, MachineCosts):
        return asdict(costs)
    return {level: asdict(link) for level, link in costs.links.items()} if costs else None


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
