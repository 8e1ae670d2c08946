# SPDX-License-Identifier: Apache-2.0
"""Regret of the choice: ``make regret``, or ``python -m bench.regret --ranks 2``.

Time of what a call runs over that of the best plan there is, for collectives, sizes (those that
were tuned, and held-out ones) and numbers of ranks, on this machine. Everything runs twice: what is
best is found in one run, and raced against the choice in another, in interleaved pairs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.record import RESULTS, ROOT, save
from collectives.tuning.tuner import KINDS, SHARED_SIZES

HELD_OUT = (24, 400, 2500, 7000, 50_000, 180_000, 500_000, 2 << 20, 5_000_000, 20 << 20)
UNDECIDED = 0.05  # a cell whose best plan differs from itself by more


def undecided(cell: dict[str, Any]) -> bool:
    """Tell whether two runs of one plan differ too much for the cell to say anything."""
    return bool(cell["same"]["low"] < 1 - UNDECIDED or cell["same"]["high"] > 1 + UNDECIDED)


def figures(cells: Sequence[dict[str, Any]], who: str) -> dict[str, float]:
    """Return geometric mean, 99th percentile and largest of the regrets."""
    regrets = sorted(cell[who]["ratio"] for cell in cells)
    if not regrets:
        return {"cells": 0}
    return {
        "cells": len(regrets),
        "mean": math.exp(sum(map(math.log, regrets)) / len(regrets)),
        "p99": regrets[max(math.ceil(0.99 * len(regrets)) - 1, 0)],
        "max": regrets[-1],
    }


def summary(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of what was decided: tuned sizes, held-out ones, and the rules."""
    clear = [cell for cell in cells if not undecided(cell)]
    return {
        "undecided": len(cells) - len(clear),
        "of": len(cells),
        "tuned": figures([cell for cell in clear if not cell["held_out"]], "tuned"),
        "held out": figures([cell for cell in clear if cell["held_out"]], "tuned"),
        "rule": figures(clear, "rule"),
    }


def measured(ranks: int, job: dict[str, Any], part: Path) -> dict[str, Any]:
    """Start the ranks and return what they found."""
    asked = job | {"pin": ranks <= len(os.sched_getaffinity(0))}
    command = ("-m", "collectives.launch", "-n", str(ranks), "-m", "bench.regret.rank")
    subprocess.run([sys.executable, *command, json.dumps(asked), str(part)], cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads(part.read_text())
    part.unlink()
    return found


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(prog="python -m bench.regret", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SHARED_SIZES))
    parser.add_argument("--held-out", type=int, nargs="*", default=list(HELD_OUT))
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of tune() (10)")
    parser.add_argument("--cell", type=float, default=0.5, help="seconds of a cell's run A (0.5)")
    parser.add_argument("--output", type=Path, default=RESULTS / "regret.json")
    chosen = parser.parse_args()
    job = {
        "kinds": chosen.kinds,
        "tuned": sorted(chosen.sizes),
        "held_out": sorted(set(chosen.held_out) - set(chosen.sizes)),
        "budget": chosen.budget,
        "cell": chosen.cell,
    }
    result: dict[str, Any] = {"asked": job, "ranks": {}}
    for ranks in chosen.ranks:
        found = measured(ranks, job, chosen.output.with_suffix(f".{ranks}.part"))
        found["summary"] = summary(found["cells"])
        result["ranks"][str(ranks)] = found
        print(f"{ranks} ranks: {json.dumps(found['summary'])}", flush=True)
    save(chosen.output, result)


if __name__ == "__main__":
    main()
