# SPDX-License-Identifier: Apache-2.0
"""What plans of sparse sums read and write: arrays of all kinds, by C's short way and Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import last, on_ranks, on_wired_ranks


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_sums_where_the_values_lie(among: Any, shift: int) -> None:
    n = 40

    def body(comm: cl.Communicator) -> None:
        where = np.arange(n) * 2 + comm.rank % 2
        plan = comm.sparse_plan(where, length=2 * n)
        memory = np.zeros(n + shift, "float32")
        values, sums = memory[:n], memory[shift:]
        values[:] = np.arange(n) + 1
        assert plan.reduce(values, sums) is sums
        np.testing.assert_array_equal(sums, 2 * np.arange(1, n + 1))

    among(4, body)


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "complex128", "bool", "uint64"])
def test_both_ways_are_one(among: Any, dtype: str) -> None:
    """C serves plain arrays; what is given a time-out goes through Python."""
    rng = np.random.default_rng(5)
    lists = [rng.permutation(300)[: 50 * (r + 1)] for r in range(3)]
    values = [rng.integers(0, 3, each.size).astype(dtype) for each in lists]

    def body(comm: cl.Communicator) -> None:
        mine = values[comm.rank]
        plan = comm.sparse_plan(lists[comm.rank], np.arange(300), length=300)
        short = plan.reduce(mine)
        taken = last(comm)
        long = plan.reduce(mine, timeout=20)
        assert short.tobytes() == long.tobytes()
        assert short.dtype == mine.dtype
        names = ("kind", "algorithm", "mode", "nbytes", "messages", "rounds")
        assert [getattr(taken, n) for n in names] == [getattr(last(comm), n) for n in names]
        out = np.empty((30, 10), dtype)
        assert plan.reduce(mine, out) is out
        assert out.tobytes() == long.tobytes()
        spread = np.repeat(mine, 2)[::2]
        assert plan.reduce(spread).tobytes() == long.tobytes()

    among(3, body)


def test_plans_of_a_communicator_that_is_closed() -> None:
    (comm,) = cl.local(1)
    plan = comm.sparse_plan([1], length=3)
    comm.close()
    with pytest.raises(cl.ClosedError):
        plan.reduce(np.ones(1))
