# SPDX-License-Identifier: Apache-2.0
"""What ``reproducible=`` costs: ``python -m bench.reproducible``.

Allreduces of float32 among 2, 4 and 8 processes, prepared once (persistent calls, so that the plan
is compared and not the look at arguments), turn and turn about: the default, ``True`` and
``"any_p"``. A round gives a ratio to the default; what counts is their median.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import collectives as cl
from bench.record import RESULTS, ROOT, save
from collectives.names import Reproducible

WISHES: tuple[Reproducible, ...] = (False, True, "any_p")
SIZES = tuple(8 * 8**i for i in range(8))  # bytes, to 16 MiB
BUDGET = 1.5  # seconds for a size
MOST_ROUNDS = 201
TURN = 3e-4  # seconds that a turn of the default lasts, at least


def rank_main(output: Path) -> None:
    """Measure all sizes; rank 0 writes the medians."""
    comm = cl.init(timeout=120)
    rows = [measured(comm, nbytes) for nbytes in SIZES]
    if comm.rank == 0:
        output.write_text(json.dumps(rows))
    comm.close()


def measured(comm: cl.Communicator, nbytes: int) -> dict[str, Any]:
    """Return the median seconds of the default, and of the ratios of the others to it."""
    x = np.random.default_rng(comm.rank).standard_normal(nbytes // 4).astype(np.float32)
    calls = [comm.persistent.allreduce(x, np.empty_like(x), reproducible=w) for w in WISHES]
    times = [one_turn(comm, call, 1) for call in calls for _ in range(2)]
    repeats = max(1, min(200, math.ceil(TURN / max(times[1], 1e-9))))
    rounds = BUDGET / max(sum(times[1::2]) * repeats, 1e-9)
    default, *others = calls
    row: dict[str, Any] = {"bytes": nbytes}
    for wish, call in zip(("true", "any_p"), others, strict=True):
        pairs = []
        for turn in range(max(5, min(MOST_ROUNDS, int(rounds)))):
            # Who comes second finds what the first has left in the caches.
            order = (default, call) if turn % 2 else (call, default)
            found = [one_turn(comm, each, repeats) for each in order]
            pairs.append(found if turn % 2 else found[::-1])
        seconds = np.array(pairs)
        row["seconds"] = row.get("seconds", float(np.median(seconds[:, 0])))
        row[wish] = float(np.median(seconds[:, 1] / seconds[:, 0]))
        row["rounds"] = len(pairs)
    for call in calls:
        call.free()
    return row


def one_turn(comm: cl.Communicator, call: Callable[[], object], repeats: int) -> float:
    """Return the seconds of one call on the slowest rank; the same on all ranks."""
    comm.barrier()
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    spent = np.array([(time.perf_counter() - begin) / repeats])
    return float(comm.allreduce(spent, op="max")[0])


def geometric_mean(values: Sequence[float]) -> float:
    """Return it."""
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    """Start the ranks, print and keep what they found."""
    parser = argparse.ArgumentParser(prog="python -m bench.reproducible", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--output", type=Path, default=RESULTS / "reproducible.json")
    parser.add_argument("--as-rank", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.as_rank is not None:
        rank_main(chosen.as_rank)
        return
    result: dict[str, Any] = {"dtype": "float32", "op": "sum", "ranks": {}}
    for p in chosen.ranks:
        part = chosen.output.with_suffix(f".{p}.part")
        command = ("-m", "collectives.launch", "-n", str(p), "-m", "bench.reproducible")
        subprocess.run([sys.executable, *command, "--as-rank", str(part)], cwd=ROOT, check=True)
        rows = json.loads(part.read_text())
        part.unlink()
        means = {key: geometric_mean([row[key] for row in rows]) for key in ("true", "any_p")}
        result["ranks"][str(p)] = {"sizes": rows, "geometric_mean": means}
        print(f"{p} ranks   bytes   default us     True    any_p")
        for row in rows:
            print(
                f"{row['bytes']:15} {row['seconds'] * 1e6:12.2f} {row['true']:8.3f} "
                f"{row['any_p']:8.2f}"
            )
        print(f"{'geometric mean':>28} {means['true']:8.3f} {means['any_p']:8.2f}", flush=True)
    save(chosen.output, result)


if __name__ == "__main__":
    main()
