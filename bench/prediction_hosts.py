# SPDX-License-Identifier: Apache-2.0
"""How well calls between shaped hosts are predicted: ``python -m bench.prediction_hosts``, root.

Four hosts with one rank each measure their links (``comm.topology()``) and then, cell by cell, all
algorithms with several tiles, in turns; each plan is predicted on these links by a simulation of
it.
Printed are the median error, and in how many cells the better of the first two was predicted, of
those in which they differ by more than 5 %, and beyond doubt. Plans that are predicted to take many
times as long as the first are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import collectives as cl
from bench.prediction import COLLECTIVES, at_least, show, summary
from bench.record import RESULTS, save
from bench.regret.jobs import on_shaped
from collectives.tuning.candidates import candidates
from collectives.tuning.modelled import wire_seconds
from collectives.tuning.race import Buffers, Race, Runner

MODULE = "bench.prediction_hosts"
SIZES = (1024, 16 << 10, 128 << 10, 1 << 20, 4 << 20)
PLANS = ((0, 0), (1, 16 << 10), (1, 64 << 10))  # lag and tile
FAR_OFF = 6.0  # times the fastest prediction
ROUNDS = 15  # and of short ones, which vary more, so many:
SHORT, OF_SHORT = 16 << 10, 90


def cell(comm: cl.Communicator, links: cl.Topology, kind: str, nbytes: int) -> dict[str, Any]:
    """Measure and predict the plans of a cell; every rank must, and has the same links."""
    buffers = Buffers(kind, nbytes, comm.size)
    every = [
        c for c in candidates(kind, comm.size, nbytes, False) if (c.lag, c.tile_bytes) in PLANS
    ]
    seconds = [wire_seconds(links, choice, comm.size) for choice in every]
    near = [
        (choice, found)
        for choice, found in zip(every, seconds, strict=True)
        if found <= FAR_OFF * min(seconds)
    ]
    runners = [Runner(comm, choice, buffers, None) for choice, _ in near]
    race = Race(comm, runners, buffers, alone=True)
    race.rounds(OF_SHORT if nbytes <= SHORT else ROUNDS)
    fastest = race.samples[id(min(runners, key=race.median))]
    plans: list[dict[str, Any]] = [
        {
            "algorithm": choice.algorithm,
            "plan": str(choice),
            "measured_us": round(race.median(runner) * 1e6, 3),
            "predicted_us": round(found * 1e6, 3),
            "at_least": at_least(fastest, race.samples[id(runner)]),
        }
        for (choice, found), runner in zip(near, runners, strict=True)
    ]
    plans.sort(key=lambda plan: plan["measured_us"])
    return {
        "kind": kind,
        "size": nbytes,
        "ranks": comm.size,
        "left_out": len(every) - len(near),
        "plans": plans,
    }


def rank(words: str, output: Path) -> None:
    """Measure all cells; rank 0 writes them."""
    asked = json.loads(words)
    with cl.init(timeout=120) as comm:
        links = comm.topology()
        cells = [cell(comm, links, kind, n) for n in asked["sizes"] for kind in asked["kinds"]]
        if comm.rank == 0:
            output.write_text(json.dumps({"cells": cells, "topology": str(links)}))


def by_size(cells: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the median error of each size, the sign with it: above 0 it was predicted too long."""
    found = {}
    for size in sorted({one["size"] for one in cells}):
        plans = [plan for one in cells if one["size"] == size for plan in one["plans"]]
        found[str(size)] = round(median(p["predicted_us"] / p["measured_us"] - 1 for p in plans), 4)
    return found


def main() -> None:
    """Measure, print, and write bench/results/prediction_hosts.json."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--mbit", type=float, default=1000.0, help="of each link (1000)")
    parser.add_argument("--kinds", nargs="+", default=list(COLLECTIVES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="bytes")
    parser.add_argument("--output", type=Path, default=RESULTS / "prediction_hosts.json")
    chosen = parser.parse_args()
    asked = {"kinds": chosen.kinds, "sizes": chosen.sizes, "limit": 600.0, "budget": 0.0}
    done = on_shaped(chosen.hosts, chosen.mbit, asked, MODULE)
    found = {**summary(done["cells"]), "median_by_size": by_size(done["cells"])}
    show(done["cells"], found)
    save(chosen.output, {"summary": found, **done})


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].startswith("{"):
        rank(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
