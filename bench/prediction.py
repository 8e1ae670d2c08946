# SPDX-License-Identifier: Apache-2.0
"""How well calls of two ranks of this machine are predicted: every plan beside its prediction.

For each collective and size all candidate plans (algorithm, lag, tile) are measured in turns, each
call alone, and predicted from what the machine was found to cost at that moment. Which stores they
use is for the ranks to find out, as in any call. Printed are the median error, and in how many
cells the better of the first two was predicted, of those in which they differ by more than 5 %, and
beyond doubt.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import collectives as cl
from bench.record import RESULTS, ROOT, save
from collectives.cli.worker import pin_to_core
from collectives.exact import Buffers, Workload
from collectives.intervals import of_median
from collectives.machine_costs import MachineCosts
from collectives.machine_probe import measured_costs
from collectives.measure import Contender, bind, timed
from collectives.prediction import predict
from collectives.tuning.installed import install
from collectives.tuning.table import Choice

RANKS = 2
SIZES = tuple(64 << i for i in range(10, 20, 2))  # 64 KiB to 16 MiB
COLLECTIVES = ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "alltoall")
TILES = (64 << 10, 256 << 10)
LAGS = (0, 1)
PROBE_S = 0.2
DIFFERENT = 1.05
BLOCK = 3  # calls of a plan in a row


@dataclass(frozen=True)
class Candidate:
    """A plan that may be forced."""

    algorithm: str
    lag: int
    tile_bytes: int


@dataclass
class Timed:
    """A plan of a cell: seconds that were measured and predicted."""

    candidate: Candidate
    samples: list[float] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median of the calls."""
        return median(self.samples)

    @property
    def expected(self) -> float:
        """The median of the predictions."""
        return median(self.predicted)


def different(kind: str) -> list[str]:
    """Return the algorithms of a collective: of those that do the same among two, the first."""
    found: dict[object, str] = {}
    for a in cl.algorithms(kind):
        if a.fits(RANKS):
            made = cl.schedule(a.name, RANKS, kind)
            found.setdefault((made.chunks, made.ranks), a.name)
    return list(found.values())


def candidates(kind: str) -> list[Candidate]:
    """Return all plans of a collective that are compared."""
    return [
        Candidate(name, lag, tile) for name in different(kind) for lag in LAGS for tile in TILES
    ]


# ---- a rank --------------------------------------------------------------------------------------


class Ranks:
    """What a rank has: its communicator."""

    def __init__(self) -> None:
        """Meet the other rank."""
        self.comm = cl.init(timeout=60)
        pin_to_core(self.comm.rank)

    def force(self, kind: str, candidate: Candidate) -> None:
        """Let calls of the kind run the candidate."""
        how = candidate.algorithm, "staged", candidate.lag, candidate.tile_bytes
        install(self.comm, [Choice(kind, 0, *how), Choice(kind, 0, *how, far=True)])

    def goes_on(self, until: float) -> bool:
        """Whether there is time: rank 0 decides."""
        word = np.array([time.monotonic() < until])
        self.comm.broadcast(word)
        return bool(word[0])


def expected(costs: MachineCosts, kind: str, size: int, c: Candidate) -> float:
    """Return the seconds that a call alone is predicted to take."""
    return predict(
        costs,
        kind,
        c.algorithm,
        size,
        RANKS,
        lag=c.lag,
        tile_bytes=c.tile_bytes,
        far=costs.far.measured,
        agrees=True,
        alone=True,
    )


def cell(ranks: Ranks, kind: str, size: int, budget: float) -> list[Timed]:
    """Measure all candidates of a cell in turns, until the time is spent."""
    load = Workload(kind, size)
    comm = ranks.comm
    buffers = Buffers(load, comm.rank, RANKS)
    call = bind(comm, buffers, Contender())
    found = [Timed(c) for c in candidates(kind)]
    until = time.monotonic() + budget
    turn = 0
    while turn == 0 or ranks.goes_on(until):
        install(comm, [])  # the probe's own calls are those of any program
        costs = measured_costs(comm, PROBE_S)
        for one in found if turn % 2 == 0 else reversed(found):
            ranks.force(kind, one.candidate)
            # The first call after a change of plans binds its own.
            durations, wrong = timed(comm, buffers, call, 1 + BLOCK, turn)
            if wrong:
                raise RuntimeError(f"{kind} of {size} bytes by {one.candidate} is wrong")
            comm.allreduce(durations, op="max")
            one.samples += durations[1:].tolist()
            one.predicted.append(expected(costs, kind, size, one.candidate))
        turn += 1
    return found


def rank(kinds: Sequence[str], budget: float) -> None:
    """Measure all cells; rank 0 prints them, one line of JSON each."""
    ranks = Ranks()
    each = budget / (len(kinds) * len(SIZES))
    for kind in kinds:
        for size in SIZES:
            found = cell(ranks, kind, size, each)
            if ranks.comm.rank == 0:
                print(json.dumps(row(kind, size, found)), flush=True)
    ranks.comm.barrier()


def row(kind: str, size: int, found: Sequence[Timed]) -> dict[str, Any]:
    """Return a cell as JSON: plans by their time, in microseconds."""
    ordered = sorted(found, key=lambda one: one.seconds)
    plans = [
        {
            **asdict(one.candidate),
            "calls": len(one.samples),
            "measured_us": round(one.seconds * 1e6, 3),
            "predicted_us": round(one.expected * 1e6, 3),
            "at_least": at_least(ordered[0].samples, one.samples),
        }
        for one in ordered
    ]
    return {"kind": kind, "size": size, "ranks": RANKS, "plans": plans}


def at_least(fastest: Sequence[float], other: Sequence[float]) -> float:
    """Return how many times as long a plan takes beyond doubt (95 %); samples are pairs."""
    low, _ = of_median(np.log(np.array(other) / np.array(fastest)))
    return round(math.exp(low), 4)


# ---- what comes of it ----------------------------------------------------------------------------


def summary(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the median absolute error, how often the order of the first two is right, and regret.

    The first two are the fastest plans of different algorithms; regret: how many times as long as
    the fastest plan that takes which is predicted to be.
    """
    errors = [
        abs(plan["predicted_us"] / plan["measured_us"] - 1)
        for one in cells
        for plan in one["plans"]
    ]
    orders = [order for one in cells if (order := right_order(one["plans"])) is not None]
    regrets = [regret(one["plans"]) for one in cells]
    return {
        "median_error": round(median(errors), 4),
        "cells": len(cells),
        "cells_that_differ": len(orders),
        "order_right": round(sum(orders) / len(orders), 4) if orders else None,
        "regret_geomean": round(float(np.exp(np.mean(np.log(regrets)))), 4),
        "regret_max": round(max(regrets), 4),
    }


def right_order(plans: Sequence[dict[str, Any]]) -> bool | None:
    """Whether the better of the first two algorithms is predicted; None: they hardly differ."""
    first = plans[0]
    second = next((p for p in plans if p["algorithm"] != first["algorithm"]), None)
    if second is None or second["measured_us"] <= DIFFERENT * first["measured_us"]:
        return None
    if second["at_least"] <= 1:
        return None
    return bool(first["predicted_us"] < second["predicted_us"])


def regret(plans: Sequence[dict[str, Any]]) -> float:
    """Return how many times as long as the fastest plan takes what is predicted to be it."""
    chosen = min(plans, key=lambda plan: plan["predicted_us"])
    return float(chosen["measured_us"] / plans[0]["measured_us"])


def measured(kinds: Sequence[str], budget: float) -> list[dict[str, Any]]:
    """Start two ranks and return their cells."""
    command = [sys.executable, "-m", "collectives.launch", "-n", str(RANKS)]
    command += [sys.executable, "-m", "bench.prediction", "--rank"]
    command += ["--budget", str(budget), "--kinds", ",".join(kinds)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    lines = [line[line.index("{") :] for line in done.stdout.splitlines() if "{" in line]
    return [json.loads(line) for line in lines]


def show(cells: Sequence[dict[str, Any]], found: dict[str, Any]) -> None:
    """Print the fastest plan of each cell, and the summary."""
    for one in cells:
        best = one["plans"][0]
        print(
            f"{one['kind']:>15} {one['size'] >> 10:>6} KiB  {best['algorithm']:<22}"
            f"{best['measured_us']:>11.1f} us, predicted {best['predicted_us']:>9.1f}; "
            f"regret {regret(one['plans']):.2f}"
        )
    print(", ".join(f"{key} {value}" for key, value in found.items()))


def main() -> None:
    """Measure, print, and write bench/results/prediction.json."""
    parser = argparse.ArgumentParser(prog="python -m bench.prediction", description=__doc__)
    parser.add_argument("--budget", type=float, default=300, help="seconds (300)")
    parser.add_argument("--kinds", default=",".join(COLLECTIVES), help="collectives (all six)")
    parser.add_argument("--output", type=Path, default=RESULTS / "prediction.json")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    kinds = chosen.kinds.split(",")
    if chosen.rank:
        rank(kinds, chosen.budget)
        return
    cells = measured(kinds, chosen.budget)
    found = summary(cells)
    show(cells, found)
    save(chosen.output, {"summary": found, "cells": cells})


if __name__ == "__main__":
    main()
