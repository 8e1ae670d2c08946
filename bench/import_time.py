# SPDX-License-Identifier: Apache-2.0
"""What ``import collectives`` adds to ``import numpy``: ``python -m bench.import_time``.

A program that uses the library has NumPy loaded anyhow, and asks for `init` and for a collective,
with which all is loaded that plain calls need. New interpreters make the two imports in
turns, in both orders, since a machine is faster or slower for seconds at a time; what counts
is the median of the differences within a pair. Prints a table, writes
bench/results/import_time.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from bench.record import RESULTS, ROOT, save
from collectives.cli.screen import console

GOAL_MS = 30.0
ALONE, WITH_US = "numpy", "numpy, collectives"
ASKED_FOR = {ALONE: "", WITH_US: "collectives.init, collectives.allreduce"}
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Spread:
    """Milliseconds: the median of several runs, and between what half and all of them lie."""

    median: float
    lower: float
    upper: float
    least: float
    most: float


def spread(times: Sequence[float]) -> Spread:
    """Sum up times in milliseconds, of which there is at least one."""
    ordered = sorted(times)
    half = len(ordered) // 2
    lower, upper = ordered[: half + 1], ordered[len(ordered) - half - 1 :]
    return Spread(median(ordered), median(lower), median(upper), ordered[0], ordered[-1])


def seconds(modules: str, compiled: str) -> float:
    """Return what a new interpreter needs to load ``modules``, its own start left out.

    As in an installed package, modules are compiled already: after the first time they are, in
    the folder ``compiled``.
    """
    program = (
        "from time import perf_counter\n"
        "begin = perf_counter()\n"
        f"import {modules}\n"
        f"{ASKED_FOR[modules]}\n"
        "print(perf_counter() - begin)\n"
    )
    env = os.environ | {"PYTHONPYCACHEPREFIX": compiled}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=env,
        check=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    return float(done.stdout)


def measured(pairs: int) -> dict[str, list[float]]:
    """Return milliseconds of both imports, a pair at the same place of both lists."""
    order = (ALONE, WITH_US)
    times: dict[str, list[float]] = {modules: [] for modules in order}
    with TemporaryDirectory() as compiled:
        for modules in order:
            seconds(modules, compiled)
        for number in range(pairs):
            for modules in order if number % 2 == 0 else reversed(order):
                times[modules].append(seconds(modules, compiled) * 1e3)
    return times


def judged(times: dict[str, list[float]]) -> dict[str, Any]:
    """Return what goes to the file: times, what is added, and whether that meets the goal."""
    added = [ours - alone for alone, ours in zip(times[ALONE], times[WITH_US], strict=True)]
    found = spread(added)
    rows = {f"import {modules}": asdict(spread(runs)) for modules, runs in times.items()}
    return {
        "unit": "ms",
        "pairs": len(added),
        "rows": rows | {"added": asdict(found)},
        "goal": GOAL_MS,
        "met": found.median <= GOAL_MS,
    }


def table(found: dict[str, Any]) -> Table:
    """Return one line per import, and one for what ours adds."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("ms")
    for head in ("median", "half within", "all within"):
        shown.add_column(head, justify="right")
    for name, row in found["rows"].items():
        shown.add_row(
            name,
            f"{row['median']:.1f}",
            f"{row['lower']:.1f}-{row['upper']:.1f}",
            f"{row['least']:.1f}-{row['most']:.1f}",
        )
    return shown


def main() -> int:
    """Measure, print, write; with --strict a missed goal is exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.import_time", description=__doc__)
    parser.add_argument("--pairs", type=int, default=30, help="of interpreters (30)")
    parser.add_argument("--output", type=Path, default=RESULTS / "import_time.json")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if the goal is missed")
    chosen = parser.parse_args()
    if chosen.pairs < 1:
        parser.error("--pairs must be 1 or more")
    found = judged(measured(chosen.pairs))
    save(chosen.output, found)
    console().print(table(found), highlight=False)
    told = "met" if found["met"] else "missed"
    print(f"\ngoal: at most {found['goal']:.0f} ms added: {told}; {chosen.output}")
    return 1 if chosen.strict and not found["met"] else 0


if __name__ == "__main__":
    sys.exit(main())
