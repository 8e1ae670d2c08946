# SPDX-License-Identifier: Apache-2.0
"""Whether all ranks choose alike: ``python -m bench.agreement``, 10^5 random calls, a few minutes.

Collectives of random kinds, lengths, dtypes and options follow each other, while rules are refined
and a random table of choices comes and goes. What ranks may do each in its own way they do: arrays
lie in ordinary memory or in the symmetric heap, at any distance from a cache line, and are written
in place or not. After each call a rank notes what ``comm.last`` says has run; the notes of all are
compared every 500 calls, and results checked. Any difference is counted, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import collectives as cl
from bench.record import RESULTS, ROOT, save
from collectives.tuning.machine import fingerprint
from collectives.tuning.table import Choice, TunedTable

KINDS = ("allreduce", "reduce_scatter", "allgather", "alltoall", "broadcast", "reduce", "barrier")
DTYPES = ("float32", "float64", "float16", "int64", "uint8")
LENGTHS = (0, 15)  # powers of two of elements of a part
LARGEST = 1 << 15
BATCH = 500  # calls between comparisons
REFINED = 30.0  # seconds that refining may cost


class Arrays:
    """Memory of both kinds, of which a rank takes pieces as it likes."""

    def __init__(self, comm: cl.Communicator, seed: int) -> None:
        """Take it."""
        most = LARGEST * comm.size * 8 + 64
        self._memories = [np.zeros(most, np.uint8), comm.empty(most, np.uint8)]
        self._own = np.random.default_rng([seed, comm.rank])

    def piece(self, elements: int, dtype: str, value: int) -> Any:
        """Return an array of so many elements, each of this value."""
        memory = self._memories[self._own.integers(2)]
        size = np.dtype(dtype).itemsize
        start = int(self._own.integers(64 // size)) * size
        array = memory[start : start + elements * size].view(dtype)
        array[:] = value
        return array

    def target(self, elements: int, dtype: str) -> Any:
        """Return an array to be written, or None: the call makes one, or writes its input."""
        return None if self._own.integers(2) else np.zeros(elements, dtype)


def run_call(comm: cl.Communicator, arrays: Arrays, kind: str, rng: np.random.Generator) -> bool:
    """Make one call; False where its result is wrong."""
    p, dtype = comm.size, str(rng.choice(DTYPES))
    n = min(int(2 ** rng.uniform(*LENGTHS)), LARGEST)
    options: dict[str, Any] = {}
    if kind in ("broadcast", "reduce"):
        options["root"] = int(rng.integers(p))
    if kind in ("allreduce", "reduce_scatter") and rng.integers(8) == 0:
        options["reproducible"] = True
    if kind == "barrier":
        comm.barrier()
        return True
    whole = n * p if kind in ("reduce_scatter", "alltoall") else n
    x = arrays.piece(whole, dtype, comm.rank + 1)
    if kind == "allreduce":
        got = np.asarray(comm.allreduce(x, arrays.target(n, dtype), **options))
        return bool((got == p * (p + 1) // 2).all())
    if kind == "reduce_scatter":
        return bool((np.asarray(comm.reduce_scatter(x, **options)) == p * (p + 1) // 2).all())
    if kind == "reduce":
        got = np.asarray(comm.reduce(x, **options))
        return comm.rank != options["root"] or bool((got == p * (p + 1) // 2).all())
    if kind == "broadcast":
        return bool((np.asarray(comm.broadcast(x, **options)) == options["root"] + 1).all())
    got = comm.allgather(x) if kind == "allgather" else comm.alltoall(x)
    return bool((np.asarray(got).reshape(p, n) == np.arange(1, p + 1).reshape(p, 1)).all())


def random_table(comm: cl.Communicator, rng: np.random.Generator) -> TunedTable:
    """Return a table in which chance has chosen: the same on all ranks."""
    choices = []
    for kind in KINDS[:4]:
        names = [a.name for a in cl.algorithms(kind) if a.fits(comm.size)]
        edges = sorted({0, *(int(x) for x in rng.integers(1, 1 << 18, 4))})
        choices += [
            Choice(kind, edge, str(rng.choice(names)), "staged", 1, 65536) for edge in edges
        ]
    return TunedTable(comm.size, fingerprint(comm), cl.__version__, tuple(choices))


def what_ran(comm: cl.Communicator) -> str:
    """Return what the last call ran, which all ranks must say alike."""
    last = comm.last
    assert last is not None
    return f"{last.kind} {last.algorithm} {last.mode}"


def measure(comm: cl.Communicator, calls: int, seed: int, output: Path) -> None:
    """Make the calls; rank 0 writes what was found."""
    rng, arrays = np.random.default_rng(seed), Arrays(comm, seed)
    comm.refine(REFINED)
    found = {"calls": 0, "disagreements": 0, "wrong": 0}
    ways: Counter[str] = Counter()
    while found["calls"] < calls:
        notes = np.zeros(BATCH, np.uint64)
        for i in range(BATCH):
            right = run_call(comm, arrays, str(rng.choice(KINDS)), rng)
            what = what_ran(comm)
            ways[what] += 1
            notes[i] = crc32(f"{what} {comm.sequence}".encode())
            found["wrong"] += not right
        everybody = np.asarray(comm.allgather(notes)).reshape(comm.size, BATCH)
        found["disagreements"] += int((everybody != everybody[0]).any(axis=0).sum())
        found["calls"] += BATCH
        if found["calls"] % (20 * BATCH) == 0:
            comm.use_table(random_table(comm, rng) if rng.integers(2) else None)
    found["wrong"] = int(comm.allreduce(np.array([found["wrong"]]))[0])
    if comm.rank == 0:
        output.write_text(json.dumps({**found, "ways": dict(sorted(ways.items()))}))


def main() -> int:
    """Start the ranks, print and keep what they found."""
    parser = argparse.ArgumentParser(prog="python -m bench.agreement", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--output", type=Path, default=RESULTS / "agreement.json")
    parser.add_argument("--as-rank", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.as_rank is not None:
        with cl.init(timeout=120) as comm:
            measure(comm, chosen.calls, chosen.seed, chosen.as_rank)
        return 0
    result: dict[str, Any] = {"seed": chosen.seed, "ranks": {}}
    for p in chosen.ranks:
        part = chosen.output.with_suffix(f".{p}.part")
        command = ("-m", "collectives.launch", "-n", str(p), "-m", "bench.agreement")
        options = ("--calls", str(chosen.calls), "--seed", str(chosen.seed))
        whole = [sys.executable, *command, *options, "--as-rank", str(part)]
        subprocess.run(whole, cwd=ROOT, check=True)
        found = result["ranks"][str(p)] = json.loads(part.read_text())
        part.unlink()
        print(
            f"{p} ranks: {found['calls']} calls of {len(found['ways'])} kinds and ways; "
            f"{found['disagreements']} disagreements, {found['wrong']} wrong results",
            flush=True,
        )
    save(chosen.output, result)
    return int(any(r["disagreements"] or r["wrong"] for r in result["ranks"].values()))


if __name__ == "__main__":
    sys.exit(main())
