# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.kernels``: kernels of sparse vectors, and QSGD, beside floors, by one thread.

Builds and runs coll_kernels, in which all ways of a row take turns, prints ratios within a round
(their median and a 95 % interval of it), and writes bench/results/kernels.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.kernels.figures import Block, Figure, figures, rates
from bench.limits.program import ProgramError, build
from bench.record import RESULTS, save
from collectives.cli.screen import console

READY = "COLL_KERNELS"  # environment variable: a coll_kernels that is built already
TIMEOUT_S = 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; with --strict a missed goal is exit code 1. No figures: 2."""
    parser = argparse.ArgumentParser(prog="python -m bench.kernels", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="of each row (15)")
    parser.add_argument("--output", type=Path, default=RESULTS / "kernels.json")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1:
        parser.error("--rounds must be 1 or more")
    try:
        measured = blocks(chosen.rounds)
    except (ProgramError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"bench.kernels: {error}\n")
        return 2
    found = figures(measured)
    save(chosen.output, {"rows": [f.as_json() for f in found], "rates": rates(measured)})
    console().print(table(found), highlight=False)
    judged = [figure for figure in found if figure.met is not None]
    print(f"\n{sum(f.met is True for f in judged)} of {len(judged)} goals met; {chosen.output}")
    return 1 if chosen.strict and not all(figure.met for figure in judged) else 0


def blocks(rounds: int) -> list[Block]:
    """Measure."""
    path = Path(os.environ.get(READY) or build("release", "coll_kernels", folder="kernels"))
    command = [str(path), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise ProgramError(done.stderr.strip() or f"{path} ended with {done.returncode}")
    found: dict[str, list[Any]] = json.loads(done.stdout)
    return found["blocks"]


def table(found: Sequence[Figure]) -> Table:
    """Return one line per figure."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("kernel", "entries", "density", "ratio", "median", "95 %", "all", "goal", ""):
        drawn.add_column(head, no_wrap=True)
    for row in found:
        verdict = "" if row.met is None else "[green]met" if row.met else "[red]missed"
        drawn.add_row(
            row.row,
            str(row.entries),
            f"{row.density:g}",
            row.what,
            f"{row.median:.2f}",
            f"{row.low:.2f}-{row.high:.2f}",
            f"{row.least:.2f}-{row.most:.2f}",
            row.goal,
            verdict,
        )
    return drawn


if __name__ == "__main__":
    sys.exit(main())
