# SPDX-License-Identifier: Apache-2.0
"""One rank of the regret bench: tunes, then finds the best plan of each cell, and races the choice.

Run A finds the best plan among all candidates, as tune() does but with more time and without what
it knows of other sizes. Run B races it against what the table chooses, what the rules choose, and
against itself, which shows how far two equal plans lie apart at this moment.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import collectives as cl
from collectives.cli.worker import pin_to_core
from collectives.environment import place
from collectives.tuning.candidates import candidates
from collectives.tuning.installed import chosen, install
from collectives.tuning.race import Buffers, Race, Runner, interval
from collectives.tuning.table import Choice
from collectives.tuning.tuner import Cell, race_cell

ROUNDS, MOST_ROUNDS = 40, 240  # of run B: interleaved pairs, more where the machine is unquiet
CLEAR = 0.05  # how far apart a plan may be from itself
LONG = 1 << 20  # bytes from which on a cell gets more time


@dataclass(frozen=True)
class Job:
    """What the ranks are asked for."""

    kinds: tuple[str, ...]
    tuned: tuple[int, ...]  # sizes that tune() races
    held_out: tuple[int, ...]  # and that it has not seen
    budget: float  # of tune()
    cell: float  # seconds of run A for a cell
    pin: bool


def ratio(race: Race, runner: Runner, best: Runner) -> dict[str, float]:
    """Return the median of a runner's times over the best one's, pair by pair, and its interval."""
    a, b = (np.array(race.samples[id(one)]) for one in (runner, best))
    logs = np.log(a / b)
    low, high = interval(logs)
    return {
        "ratio": float(np.exp(np.median(logs))),
        "low": float(np.exp(low)),
        "high": float(np.exp(high)),
    }


def _unclear(same: dict[str, float]) -> bool:
    return same["low"] < 1 - CLEAR or same["high"] > 1 + CLEAR


def cell_of(
    comm: cl.Communicator, job: Job, kind: str, nbytes: int, table: tuple[Choice, ...]
) -> dict[str, Any]:
    """Measure one cell."""
    shared = comm.transport == "memory"
    found = Cell(kind, nbytes)
    seconds = job.cell * (3 if nbytes >= LONG else 1)
    install(comm, [])
    race_cell(comm, found, None, seconds, shared)
    buffers = Buffers(kind, nbytes, comm.size)
    install(comm, table)
    by_table, measured = chosen(comm, kind, nbytes)
    install(comm, [])
    by_rule, _ = chosen(comm, kind, nbytes)
    best = Runner(comm, found.best, buffers, None)
    again = Runner(comm, found.best, buffers, None)
    tuned = Runner(comm, by_table, buffers, table)
    rule = Runner(comm, by_rule, buffers, ())
    install(comm, [])
    race = Race(comm, [best, again, tuned, rule], buffers)
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
        "tuned": {"choice": str(by_table), "measured": measured, **ratio(race, tuned, best)},
        "rule": {"choice": str(by_rule), **ratio(race, rule, best)},
        "same": same,
        "rounds": len(race.samples[id(best)]),
    }


def main(words: str, output: Path) -> None:
    """Run one rank."""
    asked = json.loads(words)
    lists: dict[str, Any] = {key: tuple(asked.pop(key)) for key in ("kinds", "tuned", "held_out")}
    job = Job(**lists, **asked)
    if job.pin:
        pin_to_core(place().rank)
    with cl.init(timeout=120) as comm:
        begin = time.perf_counter()
        table = comm.tune(job.budget, kinds=job.kinds, sizes=job.tuned)
        spent = time.perf_counter() - begin
        rows = []
        with comm.dup() as apart:
            for nbytes in sorted(job.tuned + job.held_out):
                for kind in job.kinds:
                    rows.append(cell_of(apart, job, kind, nbytes, table.choices))
                    if comm.rank == 0:
                        row = rows[-1]
                        print(
                            f"{kind:14} {nbytes:>9} {row['tuned']['ratio']:6.3f} by table "
                            f"{row['rule']['ratio']:6.3f} by rule  {row['same']['ratio']:6.3f} "
                            f"itself  {row['best']} | {row['tuned']['choice']}",
                            flush=True,
                        )
        if comm.rank == 0:
            output.write_text(
                json.dumps({"tuning_seconds": spent, "table": table.as_json(), "cells": rows})
            )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
