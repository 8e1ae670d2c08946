# SPDX-License-Identifier: Apache-2.0
"""A rank of an MPI: Allgatherv of indices and values, added up by SciPy or in a dense array."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bench.peers.ranks.serve import station
from bench.sparse.ranks.serve import Bound, serve
from bench.sparse.supports import Array, Problem

PLACE = station()

import mpi4py  # noqa: E402

mpi4py.rc.thread_level = PLACE.way  # counts when MPI is imported
from mpi4py import MPI  # noqa: E402
from scipy.sparse import csr_array  # noqa: E402


def bind(problem: Problem, way: str, places: Array, values: Array) -> Bound:
    """Return the call of a problem."""
    comm, n = MPI.COMM_WORLD, problem.length
    counts = np.zeros(comm.size, np.int32)
    own = np.array([places.size], np.int32)
    most = problem.ranks * places.size * 2 + 1024  # ranks differ by chance
    all_places, all_values = np.empty(most, np.int32), np.empty(most, np.float32)

    def gather() -> list[slice]:
        comm.Allgather([own, MPI.INT], [counts, MPI.INT])
        begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
        comm.Allgatherv([places, MPI.INT], [all_places, (counts, begins), MPI.INT])
        comm.Allgatherv([values, MPI.FLOAT], [all_values, (counts, begins), MPI.FLOAT])
        return [slice(b, b + c) for b, c in zip(begins, counts, strict=True)]

    def by_scipy() -> Any:
        rows = [
            csr_array((all_values[s], all_places[s], [0, s.stop - s.start]), shape=(1, n))
            for s in gather()
        ]
        return sum(rows[1:], rows[0])

    def by_scatter() -> Any:
        whole = np.zeros(n, np.float32)
        for s in gather():
            whole[all_places[s]] += all_values[s]
        return whole

    def read(result: Any) -> tuple[Array | None, Array]:
        if isinstance(result, np.ndarray):
            return None, result
        result.sort_indices()
        return result.indices, result.data

    return Bound({"scipy": by_scipy, "scatter": by_scatter}[way], read)


def version() -> str:
    """Return the number in what the library says of itself."""
    found = re.search(r"\d+(\.\d+)+", MPI.Get_library_version())
    return found[0] if found else "unknown"


if __name__ == "__main__":
    serve(PLACE, version(), bind)
