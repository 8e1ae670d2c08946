# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.limits``: measures, prints the table, writes bench/results/limits.json."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

from rich.table import Table

from bench.call_cost import Callers
from bench.limits.floors import FLOORS_FILE, SIZES, Floor, judge_floors, table_of_floors
from bench.limits.goals import Block
from bench.limits.judge import Judged, from_pairs, judge, where
from bench.limits.persistent import from_python
from bench.limits.program import ProgramError, blocks, pairs, program
from bench.limits.program import floors as program_floors
from bench.record import RESULTS, save
from collectives.cli.screen import console
from collectives.cli.sizes import parse_sizes

PART = 6  # blocks between two turns of the others
PAIRS = 3  # that coll_interpreter measures in a row


def main() -> int:
    """Run; with --strict a missed goal is exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.limits", description=__doc__)
    parser.add_argument("--blocks", type=int, help="measurements per row (60; 15 of --floors)")
    parser.add_argument("--output", type=Path, help="(bench/results/limits.json or floors.json)")
    parser.add_argument(
        "--floors", action="store_true", help="instead: collectives beside loops written by hand"
    )
    parser.add_argument("--sizes", help="of --floors, in bytes, as 8,4K,1M (8 to 32M)")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    chosen = parser.parse_args()
    if chosen.blocks is not None and chosen.blocks < 1:
        parser.error("--blocks must be 1 or more")
    try:
        sizes = parse_sizes(chosen.sizes) if chosen.sizes else list(SIZES)
    except ValueError as error:
        parser.error(str(error))
    output = chosen.output or (FLOORS_FILE if chosen.floors else RESULTS / "limits.json")
    try:
        rows = floors(chosen.blocks or 15, sizes) if chosen.floors else limits(chosen.blocks or 60)
    except ProgramError as error:
        sys.stderr.write(f"bench.limits: {error}\n")
        return 2
    save(output, {"rows": [row.as_json() for row in rows]})
    missed = [row for row in rows if not row.met]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} goals met; {output}")
    return 1 if chosen.strict and missed else 0


def limits(count: int) -> list[Judged]:
    """Measure, judge and show the limits."""
    measured = measure(program(), count)
    judged = judge(measured)
    show(judged, measured)
    return judged


def floors(count: int, sizes: list[int]) -> list[Floor]:
    """Measure, judge and show the floors: `count` blocks of every collective and size."""
    path = program()
    judged = judge_floors([block for _ in range(count) for block in program_floors(path, sizes)])
    console().print(table_of_floors(judged), highlight=False)
    return judged


def measure(path: Path, count: int) -> list[Block]:
    """Measure every row `count` times, the programs in turns: the placement changes."""
    measured: list[Block] = []
    with Callers(2) as callers:  # asleep while the others are measured
        while count > 0:
            part = min(count, PART)
            measured += blocks(path, part) + from_pairs(pairs(path, -(-part // PAIRS)))
            measured += from_python(path, callers, part)
            count -= part
    return measured


def show(judged: list[Judged], measured: list[Block]) -> None:
    """Print the limits, and one line per row and placement."""
    line = median(b["line_before_ns"] for b in measured)
    yielding = median(b["yield_ns"] for b in measured if b.get("yield_ns"))
    copy = median(b["copy_gbs"] for b in measured if b.get("copy_gbs"))
    switching = median(b["switch_ns"] for b in measured if b.get("switch_ns"))
    print(
        f"line one way {line:.0f} ns, copy {copy:.1f} GB/s, sched_yield {yielding:.0f} ns where "
        f"nobody else can run, {switching:.0f} ns where another process does\n"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("row", no_wrap=True)
    table.add_column("placement")
    for head in ("blocks", "measured", "allowed", "share", "spread"):
        table.add_column(head, justify="right")
    table.add_column("goal: time allowed")
    table.add_column("")
    for row in judged:
        table.add_row(
            row.row,
            row.placement,
            str(row.blocks),
            duration(row.measured_ns),
            duration(row.allowed_ns),
            f"{row.share:.2f}",
            f"{row.best:.2f}-{row.worst:.2f}",
            row.goal + yields(row),
            verdict(row),
        )
    console().print(table, highlight=False)
    if not all(row.enough for row in judged):
        print("\n(few): of fewer blocks than the goal asks for")
    both = sum(where(block) == "mixed" for block in measured)
    if both:
        print(f"\n{both} blocks saw both placements and are left out")


def yields(row: Judged) -> str:
    """Tell what was probed where ranks share cores: the goal's own yield, and a real one."""
    if not row.switch_ns:
        return ""
    return f"\n  {duration(row.yield_ns)}; switching {duration(row.switch_ns)}"


def verdict(row: Judged) -> str:
    """Say whether a goal is met, and where that is said of too few blocks."""
    told = "[green]met" if row.met else "[red]missed"
    return told if row.enough else f"{told} (few)"


def duration(nanoseconds: float) -> str:
    """Write a time with a fitting unit."""
    if nanoseconds < 1e4:
        return f"{nanoseconds:.0f} ns"
    return f"{nanoseconds / 1e3:.1f} us"


if __name__ == "__main__":
    sys.exit(main())
