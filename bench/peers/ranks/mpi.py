# SPDX-License-Identifier: Apache-2.0
"""A rank of an MPI, through mpi4py's buffer calls with specifications made beforehand."""

from __future__ import annotations

import re

from bench.peers.ranks.serve import serve, station
from bench.peers.ranks.work import ROOT, Bound, RefusedError, Work

PLACE = station()

import mpi4py  # noqa: E402

mpi4py.rc.thread_level = PLACE.way  # counts when MPI is imported
from mpi4py import MPI  # noqa: E402

TYPES = {"float32": MPI.FLOAT, "float16": MPI.FLOAT16_T, "bfloat16": MPI.BFLOAT16_T}
LEVELS = {"single": MPI.THREAD_SINGLE, "multiple": MPI.THREAD_MULTIPLE}


def bind(work: Work) -> Bound:
    """Return the call of a cell."""
    kind = TYPES[work.dtype]
    if kind == MPI.DATATYPE_NULL:
        raise RefusedError(f"has no {work.dtype}")
    comm = MPI.COMM_WORLD
    x, out = work.arrays()
    give, take = [x, kind], [out, kind]
    gives, takes = [x, work.parts, None, kind], [out, work.parts, None, kind]
    calls = {
        "allreduce": lambda: comm.Allreduce(MPI.IN_PLACE, take),
        "reduce_scatter": lambda: comm.Reduce_scatter_block(give, take),
        "allgather": lambda: comm.Allgather(give, take),
        "broadcast": lambda: comm.Bcast(take, ROOT),
        "alltoall": lambda: comm.Alltoall(give, take),
        "reduce_scatterv": lambda: comm.Reduce_scatter(give, take, work.parts),
        "allgatherv": lambda: comm.Allgatherv(give, takes),
        "alltoallv": lambda: comm.Alltoallv(gives, takes),
    }
    return Bound(x, out, calls[work.kind])


def version() -> str:
    """Return the number in what the library says of itself."""
    found = re.search(r"\d+(\.\d+)+", MPI.Get_library_version())
    return found[0] if found else "unknown"


if __name__ == "__main__":
    if MPI.Query_thread() != LEVELS[PLACE.way]:
        raise SystemExit(f"asked for thread level {PLACE.way}, got {MPI.Query_thread()}")
    serve(PLACE, version(), bind)
