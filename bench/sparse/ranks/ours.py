# SPDX-License-Identifier: Apache-2.0
"""A rank of ours: an algorithm of sparse vectors, or the dense collective."""

from __future__ import annotations

from typing import Any

import numpy as np

import collectives as cl
from bench.peers.ranks.serve import station
from bench.sparse.ranks.serve import Bound, serve
from bench.sparse.supports import Array, Problem, expected

PLANS = ("plan", "plan of all")  # sums where this rank has values, and all that allreduce gives


def main() -> None:
    """Meet the others, then the driver."""
    place = station()

    def bind(problem: Problem, way: str, places: Array, values: Array) -> Bound:
        if way == "dense array":  # one that is there already
            whole = np.zeros(problem.length, np.float32)
            whole[places] = values
            fresh = whole.copy()

            def dense() -> Any:
                np.copyto(fresh, whole)
                return comm.allreduce(fresh)

            return Bound(dense, lambda out: (None, out))
        if way == "small":  # the step of 8 bytes
            word = np.zeros(1, np.float64)
            return Bound(lambda: comm.allreduce(word, algorithm="direct_one_shot"), None)
        if way in PLANS:
            united, _ = expected(problem)
            asked = united if way == "plan of all" else places
            plan = comm.sparse_plan(places, asked, length=problem.length)
            read = (lambda sums: (united, sums)) if way == "plan of all" else None
            return Bound(lambda: plan.reduce(values), read)
        x = cl.Sparse(places, values, problem.length)
        return Bound(lambda: comm.allreduce(x, algorithm=way), _read)

    with cl.init() as comm:
        serve(place, cl.__version__, bind)


def _read(result: Any) -> tuple[Array | None, Array]:
    if isinstance(result, cl.Sparse):
        return np.asarray(result.indices), np.asarray(result.values)
    return None, result


if __name__ == "__main__":
    main()
