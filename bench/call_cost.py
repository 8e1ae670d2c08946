# SPDX-License-Identifier: Apache-2.0
"""What a collective of 8 bytes costs its caller in Python: ``python -m bench.call_cost``.

Each call on plain NumPy arrays, into a new array and into one that is there, and as a persistent
call, by one rank and by two, one core each. The unit is what a call of a native function with two
arguments costs through cffi in the same process: so figures of two machines can be compared.
Minima of many short blocks, since cores are shared and their distance changes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from collectives import Communicator
from collectives._ffi import lib
from collectives.cli.screen import console
from collectives.cli.worker import pin_to_core
from collectives.environment import ATTEMPT, JOB, RANK, SIZE, place
from collectives.start import join

CALLS = 200  # of a block
TIMEOUT_S = 60.0
COLUMNS = ("new or in place", "into out", "persistent")

Call = Callable[[], Any]
Row = dict[str, float]  # seconds of a call, by column


def cases(comm: Communicator) -> dict[str, dict[str, Call]]:
    """Return the calls to be timed: 8 bytes are what a rank gets, or hands in."""
    p, bound = comm.size, comm.persistent
    one, other, all_parts = np.zeros(1), np.zeros(1), np.zeros(p)
    rows: dict[str, dict[str, Call]] = {}
    for name in ("allreduce", "scan", "exscan", "reduce", "allgather", "gather"):
        out = all_parts if "gather" in name else other
        rows[name] = _row(comm, name, one, out)
    for name in ("reduce_scatter", "scatter", "alltoall"):
        x = one if name == "scatter" and comm.rank != 0 else np.zeros(p)
        rows[name] = _row(comm, name, x, all_parts if name == "alltoall" else other)
    rows["broadcast"] = {
        COLUMNS[0]: partial(comm.broadcast, one), COLUMNS[2]: bound.broadcast(one)
    }  # fmt: skip
    rows["barrier"] = {COLUMNS[0]: comm.barrier, COLUMNS[2]: bound.barrier()}
    return rows


def _row(comm: Communicator, name: str, x: Any, out: Any) -> dict[str, Call]:
    plain, bound = getattr(comm, name), getattr(comm.persistent, name)
    return {
        COLUMNS[0]: partial(plain, x), COLUMNS[1]: partial(plain, x, out), COLUMNS[2]: bound(x, out)
    }  # fmt: skip


def least(call: Call, comm: Communicator, blocks: int) -> float:
    """Return the seconds of a call in the best block of the slowest rank."""
    best = np.array([np.inf])
    for _ in range(blocks):
        comm.barrier()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        best[0] = min(best[0], (time.perf_counter() - begin) / CALLS)
    return float(comm.allreduce(best, op="max")[0])


def rank(blocks: int) -> None:
    """Measure all cases as one rank; rank 0 writes them to standard output."""
    mine = place()
    if mine.size <= len(os.sched_getaffinity(0)):
        pin_to_core(mine.rank)
    with join(mine, TIMEOUT_S) as comm:
        unit = least(partial(lib.coll_algorithm_fits, 0, 2), comm, blocks)
        found: dict[str, Row] = {"unit": {"": unit}}
        for name, row in cases(comm).items():
            found[name] = {column: least(call, comm, blocks) for column, call in row.items()}
        if mine.rank == 0:
            print(json.dumps(found))


def measured(ranks: int, blocks: int) -> dict[str, Row]:
    """Start the ranks, and return what rank 0 has found: rows, and the unit."""
    common = os.environ | {SIZE: str(ranks), JOB: f"call-cost-{os.getpid()}", ATTEMPT: "0"}
    command = [sys.executable, "-m", "bench.call_cost", "--blocks", str(blocks), "--rank"]
    others = [
        subprocess.Popen(command, env=common | {RANK: str(number)}) for number in range(1, ranks)
    ]
    try:
        first = subprocess.run(
            command, env=common | {RANK: "0"}, check=True, capture_output=True, text=True
        )
        codes = [other.wait(timeout=TIMEOUT_S) for other in others]
    finally:
        for other in others:
            other.kill()  # of no effect on one that has ended
            other.wait()
    if any(codes):
        raise RuntimeError(f"ranks 1 to {ranks - 1} ended with exit codes {codes}")
    found: dict[str, Row] = json.loads(first.stdout)
    return found


def show(ranks: int, found: dict[str, Row]) -> None:
    """Print one line per collective: microseconds, and units."""
    unit = found["unit"][""]
    table = Table("8 bytes", *COLUMNS, title=f"{ranks} ranks; unit: {unit * 1e9:.0f} ns")
    for name, row in found.items():
        if name != "unit":
            cells = [row.get(column) for column in COLUMNS]
            told = ["" if c is None else f"{c * 1e6:.2f} µs = {c / unit:.1f}" for c in cells]
            table.add_row(name, *told)
    console().print(table)


def main() -> None:
    """Measure with one rank and with two."""
    parser = argparse.ArgumentParser(prog="python -m bench.call_cost", description=__doc__)
    parser.add_argument("--blocks", type=int, default=200, help="of 200 calls, per figure (200)")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.rank:
        rank(chosen.blocks)
        return
    for ranks in (1, 2):
        show(ranks, measured(ranks, chosen.blocks))


if __name__ == "__main__":
    main()
