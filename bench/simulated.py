# SPDX-License-Identifier: Apache-2.0
"""How long simulations take, and how much memory: ``python -m bench.simulated``, half an hour.

The circulant allreduce of 65,536 ranks, then every algorithm among 4,096 on a fat tree, a torus and
a dragonfly, and the one of the longest ways on a ring. Each is simulated in a process of its own,
whose largest size in memory is read when it ends.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import collectives as cl
from bench.record import RESULTS, ROOT, save

NBYTES = 1 << 20
LARGE = "fat-tree:65536,oversubscription=4"
SHAPES = ("fat-tree:4096,oversubscription=4", "torus:64x64", "dragonfly:16x16x16")
RING = "torus:4096"
LIMITS = {65536: (10.0, 2.0), 4096: (60.0, 4.0)}  # seconds and GB

PROGRAM = """
import json, resource, sys, time
import collectives as cl
kind, algorithm, topology, nbytes = sys.argv[1:]
begin = time.perf_counter()
found = cl.simulate(algorithm, topology, int(nbytes), kind=kind)
spent = time.perf_counter() - begin
gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20 * 1.073741824
print(json.dumps([found.p, found.messages, found.seconds, spent, gigabytes]))
"""


@dataclass(frozen=True)
class Row:
    """A simulation: of what, and what it took."""

    kind: str
    algorithm: str
    topology: str
    ranks: int = 0
    messages: int = 0
    simulated_s: float = 0.0
    seconds: float = 0.0
    gigabytes: float = 0.0
    refused: str = ""

    @property
    def kept(self) -> bool:
        """Whether it keeps its limits; what is refused keeps none."""
        seconds, gigabytes = LIMITS.get(self.ranks, (0.0, 0.0))
        return not self.refused and self.seconds <= seconds and self.gigabytes <= gigabytes


def simulated(kind: str, algorithm: str, topology: str) -> Row:
    """Simulate it in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, kind, algorithm, topology, str(NBYTES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return Row(kind, algorithm, topology, refused=done.stderr.strip().splitlines()[-1])
    return Row(kind, algorithm, topology, *json.loads(done.stdout))


def wanted(shapes: tuple[str, ...] = SHAPES) -> list[tuple[str, str, str]]:
    """Return what is to be simulated: collective, algorithm and topology."""
    every = [(a.kind, a.name) for a in cl.algorithms()]
    rows = [("allreduce", "circulant", LARGE), ("alltoall", "pairwise", RING)]
    return rows + [(*algorithm, shape) for shape in shapes for algorithm in every]


def told(row: Row) -> str:
    """Return a line for it."""
    what = f"{row.kind} {row.algorithm} on {row.topology}"
    if row.refused:
        return f"{what}: {row.refused}"
    mark = "" if row.kept else "  MISSED"
    return f"{what}: {row.messages} messages, {row.seconds:.1f} s, {row.gigabytes:.2f} GB{mark}"


def summary(rows: list[Row]) -> dict[str, Any]:
    """Return how many keep their limits, and the longest and the largest of 4,096 ranks."""
    done = [row for row in rows if not row.refused]
    many = [row for row in done if row.ranks == 4096]
    return {
        "kept": sum(row.kept for row in done),
        "of": len(done),
        "refused": len(rows) - len(done),
        "longest_s": max((row.seconds for row in many), default=0.0),
        "largest_gb": max((row.gigabytes for row in many), default=0.0),
    }


def main() -> int:
    """Simulate, print and keep; a limit that is missed is exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulated", description=__doc__)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--output", type=Path, default=RESULTS / "simulated.json")
    chosen = parser.parse_args()
    rows: list[Row] = []
    for one in wanted(tuple(chosen.shapes)):
        rows.append(simulated(*one))
        print(told(rows[-1]), flush=True)
    found = summary(rows)
    print(found)
    save(chosen.output, {"nbytes": NBYTES, "summary": found, "rows": [asdict(r) for r in rows]})
    return int(found["kept"] < found["of"])


if __name__ == "__main__":
    sys.exit(main())
