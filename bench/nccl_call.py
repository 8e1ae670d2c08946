# SPDX-License-Identifier: Apache-2.0
"""What a call of collectives.nccl costs beyond NCCL's own function: ``python -m bench.nccl_call``.

The library is a stub of NCCL whose functions return at once, so that a call is nothing but the way
to it. Measured in turns, in short blocks, of which the best counts, since cores are shared:

* C: the function in a loop of C, as a program in C calls it;
* empty: a function of the stub without arguments, through the same binding;
* raw: ``nccl.raw.ncclAllReduce`` with seven integers;
* persistent: ``comm.persistent.allreduce(x)``, made once;
* method: ``comm.allreduce(x)`` on a NumPy array, and on what shows itself as an array of a GPU,
  which takes the long way.

The goal: at most 0.7 microseconds over C, or three times an empty call.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from bench.record import RESULTS, save
from collectives import nccl
from collectives.cli.screen import console
from collectives.cli.worker import pin_to_core

CALLS = 2000  # of a block
GOAL_S, GOAL_EMPTY = 0.7e-6, 3.0

STUB = """
#include <stddef.h>
typedef struct { char internal[128]; } unique_id;
typedef int (*all_reduce)(const void*, void*, size_t, int, int, void*, void*);
int coll_nccl_takes_host_arrays(void) { return 1; }
int ncclGetVersion(int* version) { *version = 23007; return 0; }
const char* ncclGetErrorString(int code) { (void)code; return ""; }
const char* ncclGetLastError(void* comm) { (void)comm; return ""; }
int ncclGetUniqueId(unique_id* id) { id->internal[0] = 1; return 0; }
int ncclCommInitRank(void** comm, int n, unique_id id, int rank) {
  *comm = (void*)(size_t)(1 + n + rank + id.internal[0]);
  return 0;
}
int ncclCommDestroy(void* comm) { (void)comm; return 0; }
int ncclCommAbort(void* comm) { (void)comm; return 0; }
int ncclCommCuDevice(void* comm, int* device) { (void)comm; *device = 0; return 0; }
int ncclGroupStart(void) { return 0; }
int ncclAllReduce(const void* send, void* recv, size_t count, int dtype, int op, void* comm,
                  void* stream) {
  (void)send; (void)recv; (void)count; (void)dtype; (void)op; (void)comm; (void)stream;
  return 0;
}
int loop(int calls, void* array, void* comm) {
  all_reduce volatile function = ncclAllReduce;
  int failed = 0;
  for (int i = 0; i < calls; ++i) failed |= function(array, array, 4, 7, 0, comm, 0);
  return failed;
}
"""


class OnGpu:
    """Shows memory as CuPy's arrays do; the stub does not look at it."""

    def __init__(self) -> None:
        self.dtype, self.device = np.dtype("float32"), 0
        self.__cuda_array_interface__ = {
            "data": (0x1000, False), "shape": (4,), "typestr": "<f4", "version": 3, "stream": 1
        }  # fmt: skip


def stub(folder: Path) -> Path:
    """Compile the stub."""
    source, library = folder / "stub.c", folder / "libnccl.so.2"
    source.write_text(STUB, encoding="utf-8")
    compiler = [*os.environ.get("CXX", "g++").split(), "-x", "c", "-O2", "-fPIC", "-shared"]
    subprocess.run([*compiler, str(source), "-o", str(library)], check=True)
    return library


def cases(comm: nccl.Communicator) -> dict[str, Callable[[], Any]]:
    """Return the calls to be timed; that of C makes a whole block."""
    library, handle = comm.library, comm.handle
    loop = ctypes.CDLL(library.path).loop
    loop.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    x, y = np.zeros(4, "float32"), OnGpu()
    at, function = x.ctypes.data, library.function("ncclAllReduce")
    return {
        "C": partial(loop, CALLS, at, handle),
        "empty": library.function("ncclGroupStart"),
        "raw": partial(function, at, at, 4, 7, 0, handle, 0),
        "persistent": comm.persistent.allreduce(x),
        "method, NumPy": partial(comm.allreduce, x),
        "method, GPU": partial(comm.allreduce, y),
    }


def measured(calls: dict[str, Callable[[], Any]], blocks: int) -> dict[str, float]:
    """Return seconds of a call in the best of many blocks, which take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(blocks):
        for name, call in calls.items():
            rounds = range(1 if name == "C" else CALLS)
            begin = time.perf_counter()
            for _ in rounds:
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / CALLS)
    return best


def met(found: dict[str, float], name: str) -> bool:
    """Whether a call costs no more than wanted."""
    return found[name] - found["C"] <= max(GOAL_S, GOAL_EMPTY * found["empty"])


def main() -> None:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.nccl_call", description=__doc__)
    parser.add_argument("--blocks", type=int, default=300, help="of 2000 calls, each (300)")
    parser.add_argument("--output", type=Path, default=RESULTS / "nccl_call.json")
    chosen = parser.parse_args()
    pin_to_core(0)
    with tempfile.TemporaryDirectory() as folder:
        nccl.load(str(stub(Path(folder))))
        with nccl.init_rank(1, nccl.unique_id(), 0) as comm:
            found = measured(cases(comm), chosen.blocks)
    table = Table("call", "ns", "over C", "empty calls", "goal")
    for name, seconds in found.items():
        over = seconds - found["C"]
        wanted = "" if name in ("C", "empty") else "met" if met(found, name) else "missed"
        ratio = f"{over / found['empty']:.2f}"
        table.add_row(name, f"{seconds * 1e9:.0f}", f"{over * 1e9:.0f}", ratio, wanted)
    console().print(table)
    save(chosen.output, {"seconds": found})


if __name__ == "__main__":
    main()
