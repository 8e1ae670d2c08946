# SPDX-License-Identifier: Apache-2.0
"""One rank of the regret bench: tunes, then finds the best plan of each cell, and races the choice.

Between machines run B goes through all cells several times: ranks that share cores take turns in
one way for seconds, and in another one after that, and a plan is to be good in all of them.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import collectives as cl
from bench.regret.contest import Contest, Meeting, meeting
from collectives.cli.worker import pin_to_core
from collectives.environment import place
from collectives.machine_costs import MachineCosts
from collectives.topology import Topology
from collectives.tuning.tuner import Clock

ROUNDS = 40  # of run B: interleaved pairs, in all visits


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
    visits: int  # in which the rounds of run B are made


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


def _line(row: dict[str, Any]) -> str:
    ways = [
        f"{row[way]['ratio']:6.3f} by {way}" for way in ("tuned", "rule", "model") if way in row
    ]
    return (
        f"{row['kind']:14} {row['nbytes']:>9} {' '.join(ways)}  {row['same']['ratio']:6.3f} itself"
        f"  {row['best']}"
    )


def measured(contest: Contest, job: Job) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """Return the cells, and those that there was no time for."""
    schedule = Schedule(Clock(contest.comm, job.limit))
    rows, left_out = list[dict[str, Any]](), list[list[Any]]()
    begun = list[tuple[Meeting, float]]()  # and to be gone back to
    rounds = -(-ROUNDS // job.visits)
    for nbytes in sorted(job.tuned + job.held_out):
        contest.probe()
        for kind in job.kinds:
            if not schedule.allows(kind, nbytes):
                left_out.append([kind, nbytes])
                continue
            met = meeting(contest, kind, nbytes, job.cell)
            met.race.rounds(rounds)
            if job.visits > 1:
                begun.append((met, schedule.took(kind, nbytes)))
            else:
                met.until_clear()
                rows.append(_row(job, met, schedule.took(kind, nbytes)))
    for _ in range(1, job.visits):
        for met, _took in begun:
            met.race.rounds(rounds)
    for met, took in begun:
        met.until_clear()
        rows.append(_row(job, met, took))
    return rows, left_out


def _row(job: Job, met: Meeting, took: float) -> dict[str, Any]:
    row = {**met.row(), "held_out": met.nbytes in job.held_out, "took": took}
    if met.race.comm.rank == 0:
        print(_line(row), flush=True)
    return row


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
            contest = Contest(apart, table.choices if table is not None else None)
            rows, left_out = measured(contest, job)
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
