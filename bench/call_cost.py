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
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np
from rich.table import Table

from bench.record import ROOT
from collectives import Communicator
from collectives._ffi import lib
from collectives.cli.screen import console
from collectives.cli.worker import pin_to_core
from collectives.environment import ATTEMPT, JOB, RANK, SIZE, place
from collectives.start import join

CALLS = 200  # of a block
TIMEOUT_S = 60.0
COLUMNS = ("new or in place", "into out", "persistent")
UNIT = "unit"  # the row of the empty call

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


def rank() -> None:
    """Be one rank: measure as standard input says, line by line; rank 0 writes what it finds."""
    mine = place()
    if mine.size <= len(os.sched_getaffinity(0)):
        pin_to_core(mine.rank)
    with join(mine, TIMEOUT_S) as comm:
        rows = cases(comm)
        for line in sys.stdin:  # asleep, until there is one
            order = json.loads(line)
            blocks = order["blocks"]
            unit = least(partial(lib.coll_algorithm_fits, 0, 2), comm, blocks)
            found: dict[str, Row] = {UNIT: {"": unit}}
            for name in order["kinds"] or rows:
                row = {
                    column: least(call, comm, blocks)
                    for column, call in rows[name].items()
                    if column in (order["columns"] or COLUMNS)
                }
                found[name] = row
            if mine.rank == 0:
                print(json.dumps(found), flush=True)


class Callers:
    """Ranks, as processes, that measure when they are told to, and sleep else. Use ``with``."""

    def __init__(self, ranks: int) -> None:
        """Start them. One core for each where there are enough."""
        job = f"call-cost-{os.getpid()}-{time.monotonic_ns()}"
        common = os.environ | {SIZE: str(ranks), JOB: job, ATTEMPT: "0"}
        command = [sys.executable, "-m", "bench.call_cost", "--rank"]
        self._ranks = [
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=common | {RANK: str(number)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if number == 0 else None,
                text=True,
            )
            for number in range(ranks)
        ]

    def __enter__(self) -> Callers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Send them home, and leave none behind."""
        try:
            if error is None:
                self._end()
        finally:
            for one in self._ranks:
                with suppress(BrokenPipeError), one:  # which closes its pipes, and waits
                    one.kill()  # of no effect on one that has ended

    def measure(
        self, blocks: int, kinds: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> dict[str, Row]:
        """Return rows by collective, and that of the unit. ``kinds``, ``columns``: () means all."""
        order = json.dumps({"blocks": blocks, "kinds": kinds, "columns": columns}) + "\n"
        try:
            for one in self._ranks:
                assert one.stdin is not None
                one.stdin.write(order)
                one.stdin.flush()
        except BrokenPipeError:
            self._end()
        assert self._ranks[0].stdout is not None
        answer = self._ranks[0].stdout.readline()
        if not answer:
            self._end()
            raise RuntimeError("rank 0 ended without an answer")
        found: dict[str, Row] = json.loads(answer)
        return found

    def _end(self) -> None:
        """Wait until all ranks have ended. Raises RuntimeError where one did not end well."""
        for one in self._ranks:
            assert one.stdin is not None
            with suppress(BrokenPipeError):
                one.stdin.close()
        codes = [one.wait(timeout=TIMEOUT_S) for one in self._ranks]
        if any(codes):
            raise RuntimeError(f"the ranks ended with exit codes {codes}")


def measured(ranks: int, blocks: int) -> dict[str, Row]:
    """Start ranks, and return what they find out about all calls: rows, and the unit."""
    with Callers(ranks) as callers:
        return callers.measure(blocks)


def show(ranks: int, found: dict[str, Row]) -> None:
    """Print one line per collective: microseconds, and units."""
    unit = found[UNIT][""]
    table = Table("8 bytes", *COLUMNS, title=f"{ranks} ranks; unit: {unit * 1e9:.0f} ns")
    for name, row in found.items():
        if name != UNIT:
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
        rank()
        return
    for ranks in (1, 2):
        show(ranks, measured(ranks, chosen.blocks))


if __name__ == "__main__":
    main()
