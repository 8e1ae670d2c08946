# SPDX-License-Identifier: Apache-2.0
"""What it costs to choose a plan: ``python -m bench.choosing``, about half a minute.

A call of 8 bytes whose plan is chosen, by a table or by rule, beside the same plan forced by
``force()``: communicators of the same two ranks take turns in short blocks. And what a start costs:
from init() on until the first call is done by rule, and until tune() has found the table that an
earlier run has kept, each in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import collectives as cl
from bench.record import RESULTS, ROOT, save
from collectives._ffi import lib
from collectives.cli.worker import pin_to_core
from collectives.tuning.installed import chosen, install
from collectives.tuning.table import Choice

RANKS, NBYTES = 2, 8
BLOCK = 500  # calls
MOST_NS, MOST_TIMES = 100, 2  # over a forced plan; of an empty call of the binding
KEPT_MS, FIRST_MS = 5.0, 500.0


def dispatch(blocks: int) -> dict[str, Any]:
    """Run one rank: nanoseconds of a call, by how its plan is found."""
    with cl.init(timeout=60) as comm:
        pin_to_core(comm.rank)
        rule, table, forced = comm.dup(), comm.dup(), comm.dup()
        plan, _ = chosen(rule, "allreduce", NBYTES)
        install(table, _everywhere(plan))
        algorithm = plan.algorithm
        with forced.force(allreduce=algorithm):
            ways = {"rule": rule, "table": table, "forced": forced}
            x = np.ones(1)
            taken: dict[str, list[float]] = {name: [] for name in (*ways, "forced again")}
            order = [*ways.items(), ("forced again", forced)]
            for turn in range(blocks):
                for name, one in order if turn % 2 else reversed(order):
                    one.barrier()
                    begin = time.perf_counter()
                    for _ in range(BLOCK):
                        one.allreduce(x, op="max")
                    taken[name].append((time.perf_counter() - begin) / BLOCK * 1e9)
        for one in ways.values():
            one.close()
        return {"plan": str(plan), "ns": taken, "empty_ns": empty(blocks)}


def _everywhere(plan: Choice) -> list[Choice]:
    """Return the choice of a plan for all lengths, near and far."""
    fields = (plan.algorithm, plan.mode, plan.lag, plan.tile_bytes)
    return [Choice(plan.kind, 0, *fields, far) for far in (False, True)]


def empty(blocks: int) -> float:
    """Return the nanoseconds of a call through the binding that does nothing."""
    call = lib.coll_algorithm_count
    found = []
    for _ in range(blocks):
        begin = time.perf_counter()
        for _ in range(BLOCK):
            call()
        found.append((time.perf_counter() - begin) / BLOCK * 1e9)
    return median(found)


def start(tune: bool) -> float:
    """Run one rank: milliseconds from init() to the first result, with tune() first or without."""
    x = np.ones(1)
    with cl.init(timeout=60) as comm:
        comm.barrier()
        begin = time.perf_counter()
        if tune:
            comm.tune(10)
        comm.allreduce(x)
        return (time.perf_counter() - begin) * 1e3


def ranks(*words: str, env: dict[str, str] | None = None) -> Any:
    """Start both ranks and return what rank 0 found."""
    command = (sys.executable, "-m", "collectives.launch", "-n", str(RANKS), "-m")
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.json"
        told = ("bench.choosing", "--rank", str(part), *words)
        usual = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run([*command, *told], cwd=ROOT, check=True, env=usual | (env or {}))
        return json.loads(part.read_text())


def over(taken: dict[str, list[float]], name: str) -> dict[str, float]:
    """Return the quartiles of what a call takes more than with a forced plan, in nanoseconds."""
    more = np.array(taken[name]) - np.array(taken["forced"])
    low, middle, high = np.percentile(more, [25, 50, 75])
    return {"median": float(middle), "low": float(low), "high": float(high)}


def measured(blocks: int, starts: int) -> dict[str, Any]:
    """Measure all of it."""
    calls = ranks("--blocks", str(blocks))
    with tempfile.TemporaryDirectory() as cache:
        env = {"COLLECTIVES_CACHE": cache}
        ranks("--start", "tune", env=env)  # races, and keeps what came of it
        kept = [ranks("--start", "tune", env=env) for _ in range(starts)]
    first = [ranks("--start", "rule") for _ in range(starts)]
    rows = {name: over(calls["ns"], name) for name in ("table", "rule", "forced again")}
    return {
        "plan": calls["plan"],
        "forced_ns": median(calls["ns"]["forced"]),
        "empty_ns": calls["empty_ns"],
        "over_forced_ns": rows,
        "kept_start_ms": kept,
        "first_call_ms": first,
        "blocks": calls["ns"],
    }


def show(found: dict[str, Any]) -> None:
    """Print what was found, beside what is wanted."""
    most = max(MOST_NS, MOST_TIMES * found["empty_ns"])
    print(f"allreduce of {NBYTES} bytes, {RANKS} ranks: {found['plan']}")
    print(f"forced: {found['forced_ns']:.0f} ns a call; an empty call: {found['empty_ns']:.0f} ns")
    for name, row in found["over_forced_ns"].items():
        print(
            f"{name}: {row['median']:+.0f} ns [{row['low']:+.0f}, {row['high']:+.0f}] over forced"
            f" (wanted: {most:.0f} at most)"
        )
    for name, key, limit in (
        ("a table that was kept is in use after", "kept_start_ms", KEPT_MS),
        ("a first call by rule is done after", "first_call_ms", FIRST_MS),
    ):
        times = found[key]
        print(
            f"{name} {median(times):.2f} ms [{min(times):.2f}, {max(times):.2f}]"
            f" (wanted: {limit:g} at most)"
        )


def main() -> None:
    """Measure, print, and write bench/results/choosing.json."""
    parser = argparse.ArgumentParser(prog="python -m bench.choosing", description=__doc__)
    parser.add_argument("--blocks", type=int, default=200, help="of 500 calls (200)")
    parser.add_argument("--starts", type=int, default=10, help="of each kind (10)")
    parser.add_argument("--output", type=Path, default=RESULTS / "choosing.json")
    parser.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--start", choices=("tune", "rule"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank is None:
        found = measured(asked.blocks, asked.starts)
        show(found)
        save(asked.output, found)
        return
    came = dispatch(asked.blocks) if asked.start is None else start(asked.start == "tune")
    if os.environ["COLLECTIVES_RANK"] == "0":
        asked.rank.write_text(json.dumps(came))


if __name__ == "__main__":
    main()
