# SPDX-License-Identifier: Apache-2.0
"""What ``comm.refine()`` gains, and costs: ``python -m bench.refining``, two minutes.

Among 2, 4 and 8 processes, collectives of float32 at sizes of some bytes to some MiB run 600 times
on a communicator that refines its rules meanwhile. Then it and one that has the rules race in pairs
(persistent calls; buffers of 64 KiB and more are written between). ``gain`` is the median of what
the rules take to what was found; ``cost``: how many calls by rule the 600 calls cost in addition.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import collectives as cl
from bench.record import RESULTS, ROOT, save
from bench.reproducible import geometric_mean
from collectives.intervals import of_median
from collectives.tuning.race import Buffers

KINDS = ("allreduce", "reduce_scatter", "allgather", "alltoall")
SIZES = (8, 1024, 12_000, 64 << 10, 300_000, 1 << 20, 4 << 20)  # bytes of the vector
CALLS = 600
SETTLED = 40  # calls until all have taken what was announced last
BUDGET = 10.0  # seconds: what is found without a limit
SECONDS = 0.6  # of pairs, for a row
TURN = 1e-4  # seconds of a turn, at least


def rank_main(output: Path) -> None:
    """Measure all rows; rank 0 writes them."""
    comm = cl.init(timeout=120)
    rows = []
    for nbytes in SIZES:
        for kind in KINDS:
            with comm.dup() as refined:
                rows.append(measured(comm, refined, kind, nbytes))
    if comm.rank == 0:
        output.write_text(json.dumps(rows))
    comm.close()


def measured(
    comm: cl.Communicator, refined: cl.Communicator, kind: str, nbytes: int
) -> dict[str, Any]:
    """Return a row: what was found, its gain with the 95 % interval, and what that cost."""
    buffers = Buffers(kind, nbytes, comm.size)
    rule, found = buffers.persistent(comm), buffers.persistent(refined)
    usual = float(np.median([one_turn(comm, buffers, rule, 1) for _ in range(40)]))
    refined.refine(BUDGET)
    spent = sum(one_turn(comm, buffers, found, 1) for _ in range(CALLS))
    refined.refine(0)
    for _ in range(SETTLED):
        found()
    repeats = 1 if buffers.large else max(1, min(100, math.ceil(TURN / usual)))
    pairs: list[list[float]] = []
    end = np.array([time.perf_counter() + SECONDS])
    comm.broadcast(end)
    going = np.ones(1)
    while going[0]:
        order = (rule, found) if len(pairs) % 2 else (found, rule)
        times = [one_turn(comm, buffers, call, repeats) for call in order]
        pairs.append(times if len(pairs) % 2 else times[::-1])
        going[0] = len(pairs) < 20 or (time.perf_counter() < end[0] and len(pairs) < 500)
        comm.broadcast(going)
    logs = np.log([a / b for a, b in pairs])
    low, high = of_median(logs)
    return {
        "kind": kind,
        "bytes": nbytes,
        "choice": str(refined.explain(kind, nbytes).choice),
        "rule": str(comm.explain(kind, nbytes).choice),
        "seconds": usual,
        "gain": math.exp(float(np.median(logs))),
        "interval": [math.exp(low), math.exp(high)],
        "cost": spent / usual - CALLS,
        "pairs": len(pairs),
    }


def one_turn(
    comm: cl.Communicator, buffers: Buffers, call: Callable[[], object], repeats: int
) -> float:
    """Return the seconds of one call on the slowest rank; the same on all ranks."""
    buffers.touch()
    comm.barrier()
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    spent = np.array([(time.perf_counter() - begin) / repeats])
    return float(comm.allreduce(spent, op="max")[0])


def show(p: int, rows: list[dict[str, Any]]) -> None:
    """Print the rows that were refined, and the means of all."""
    print(f"{p} ranks   kind              bytes      us   gain  interval     found")
    for row in rows:
        if row["choice"] != row["rule"]:
            low, high = row["interval"]
            print(
                f"          {row['kind']:14} {row['bytes']:8} {row['seconds'] * 1e6:7.1f} "
                f"{row['gain']:6.2f}  {low:.2f}-{high:.2f}    {row['choice']}"
            )
    gains = [row["gain"] for row in rows]
    costs = np.median([row["cost"] for row in rows])
    print(
        f"          geometric mean of {len(rows)} rows {geometric_mean(gains):.3f}, lowest "
        f"{min(gains):.2f}; {costs:.0f} calls in addition to {CALLS}, median",
        flush=True,
    )


def main() -> None:
    """Start the ranks, print and keep what they found."""
    parser = argparse.ArgumentParser(prog="python -m bench.refining", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--output", type=Path, default=RESULTS / "refining.json")
    parser.add_argument("--as-rank", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.as_rank is not None:
        rank_main(chosen.as_rank)
        return
    result: dict[str, Any] = {"dtype": "float32", "ranks": {}}
    for p in chosen.ranks:
        part = chosen.output.with_suffix(f".{p}.part")
        command = ("-m", "collectives.launch", "-n", str(p), "-m", "bench.refining")
        subprocess.run([sys.executable, *command, "--as-rank", str(part)], cwd=ROOT, check=True)
        rows = json.loads(part.read_text())
        part.unlink()
        result["ranks"][str(p)] = rows
        show(p, rows)
    save(chosen.output, result)


if __name__ == "__main__":
    main()
