# SPDX-License-Identifier: Apache-2.0
"""What is printed last, and what is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.gpu.checks import Check
from bench.gpu.figures import Figure
from bench.gpu.yardsticks import Yardsticks
from bench.record import RESULTS, save

QUERY = "driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw"
ABBREVIATED = ("", "KiB", "MiB", "GiB")


def kept_at() -> Path:
    """Return where results go unless something else is said: $OUT, or bench/results."""
    out = os.environ.get("OUT")
    return (Path(out) if out else RESULTS) / "gpu.json"


def facts(yard: Yardsticks) -> dict[str, Any]:
    """Return what the GPU is, and its state as nvidia-smi sees it."""
    found: dict[str, Any] = dict(yard.facts())
    tool = shutil.which("nvidia-smi")
    if tool is not None:
        command = [tool, f"--query-gpu={QUERY}", "--format=csv,noheader", f"--id={yard.device}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        values = [value.strip() for value in done.stdout.split(",")]
        names = QUERY.split(",")
        if done.returncode == 0 and len(values) == len(names):
            found["nvidia_smi"] = dict(zip(names, values, strict=True))
    return found


def write(
    path: Path,
    gpu: dict[str, Any],
    checks: Sequence[Check],
    figures: Sequence[Figure],
    left_out: Sequence[str],
) -> None:
    """Keep all of it, with the machine and the commit."""
    rows = [figure.as_json() for figure in figures]
    tested = [asdict(check) for check in checks]
    save(path, {"gpu": gpu, "checks": tested, "rows": rows, "left_out": list(left_out)})


def table(figures: Sequence[Figure], goals_only: bool) -> Table:
    """Return one line per figure: those with a goal, or all."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("row", "ranks", "each", "dtype", "what", "median", "all", "goal", ""):
        drawn.add_column(head, no_wrap=True)
    for row in figures:
        if goals_only and row.met is None:
            continue
        verdict = "" if row.met is None else "[green]met" if row.met else "[red]missed"
        drawn.add_row(
            row.row,
            str(row.ranks),
            size(row.nbytes),
            row.dtype,
            row.what,
            f"{row.median:.4g}",
            f"{row.least:.4g}-{row.most:.4g}",
            row.goal,
            verdict,
        )
    return drawn


def size(nbytes: int) -> str:
    """Return a number of bytes as people say it: 16 KiB."""
    unit = 0
    while nbytes >= 1024 and nbytes % 1024 == 0 and unit + 1 < len(ABBREVIATED):
        nbytes, unit = nbytes // 1024, unit + 1
    return f"{nbytes} {ABBREVIATED[unit]}".strip()
