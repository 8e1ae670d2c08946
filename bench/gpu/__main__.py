# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.gpu``: builds, checks and measures on one GPU; docs/gpu.md says what.

All ways of a row take turns; B, what a copy moves, is measured in every round. Results are checked,
outputs poisoned before. Everything goes to $OUT/gpu.json, or bench/results/gpu.json.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import collectives as cl
from bench.gpu import checks, libraries, report
from bench.gpu.checks import Check
from bench.gpu.figures import Figure
from bench.gpu.operands import WrongError
from bench.gpu.rows import ALONE, ROWS
from bench.gpu.state import FULL, TINY, Bench
from bench.gpu.yardsticks import GpuError, Yardsticks
from collectives.cli.screen import console

CHECKS_S, SANITIZED_S = 150.0, 60.0  # at most


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. A failed check or a wrong result is exit code 1, as is a missed goal with --strict.

    Where nothing can be run it is 2.
    """
    chosen = _chosen(arguments)
    begin = time.monotonic()
    try:
        yard = _gpu()
    except (libraries.LibraryError, GpuError) as error:
        sys.stderr.write(f"bench.gpu: {error}\n")
        return 2
    deadline = begin + chosen.seconds
    tested = [] if chosen.no_checks else _checked(chosen.tiny, deadline)
    bench = Bench(yard, TINY if chosen.tiny else FULL, deadline)
    figures, wrong = _measured(bench, chosen.rows)
    tested += wrong
    output = chosen.output or report.kept_at()
    gpu = report.facts(yard)
    report.write(output, gpu, tested, figures, bench.left_out)
    print(f"on {gpu['gpu']}, {gpu['multiprocessors']} multiprocessors, CUDA {gpu['driver']}")
    _show(tested, figures, bench.left_out, chosen.all, output)
    failed = any(check.passed is False for check in tested)
    missed = chosen.strict and any(figure.met is False for figure in figures)
    return 1 if failed or missed else 0


def _chosen(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--seconds", type=float, default=470.0, help="of all of it (470)")
    usual = [name for name in ROWS if name not in ALONE]
    parser.add_argument(
        "--rows", nargs="+", choices=ROWS, default=usual,
        help=f"which (all but {', '.join(ALONE)})",
    )  # fmt: skip
    parser.add_argument("--no-checks", action="store_true", help="measure only")
    parser.add_argument("--tiny", action="store_true", help="lengths that take no time")
    parser.add_argument("--all", action="store_true", help="print figures without a goal, too")
    parser.add_argument("--output", type=Path, help="instead of $OUT/gpu.json")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    return parser.parse_args(arguments)


def _gpu() -> Yardsticks:
    """Return the first GPU. Raise LibraryError or GpuError: there is none, or no library."""
    if libraries.KERNELS not in os.environ and (why := libraries.driver()):
        raise GpuError(f"there is no GPU here: {why}")
    libraries.kernels()
    found = cl.devices()
    if not found:
        raise GpuError(f"there is no GPU here: {found.why}")
    return Yardsticks(libraries.yardsticks(), found[0].number)


def _checked(tiny: bool, deadline: float) -> list[Check]:
    left = deadline - time.monotonic()
    found = [checks.all_of(min(CHECKS_S, left), checks.FEW if tiny else "")]
    left = deadline - time.monotonic()
    return [*found, checks.sanitized(max(1.0, min(SANITIZED_S, left)))]


def _measured(bench: Bench, rows: Sequence[str]) -> tuple[list[Figure], list[Check]]:
    """Return the figures; a row that comes to a wrong result ends there, and is told."""
    figures: list[Figure] = []
    wrong: list[Check] = []
    for name in rows:
        try:
            for figure in ROWS[name](bench):
                figures.append(figure)
        except (WrongError, GpuError, cl.CollectiveError) as error:
            wrong.append(Check(f"row {name}", False, str(error)))
    return figures, wrong


def _show(
    tested: Sequence[Check],
    figures: Sequence[Figure],
    left_out: Sequence[str],
    everything: bool,
    output: Path,
) -> None:
    for sentence in left_out:
        print(f"left out: {sentence}")
    for check in tested:
        outcome = {True: "passed", False: "FAILED", None: "left out"}[check.passed]
        print(f"{check.name}: {outcome}: {check.words}")
    console().print(report.table(figures, goals_only=not everything), highlight=False)
    judged = [figure for figure in figures if figure.met is not None]
    met = sum(figure.met is True for figure in judged)
    print(f"\n{met} of {len(judged)} goals met; {len(figures)} figures in {output}")


if __name__ == "__main__":
    sys.exit(main())
