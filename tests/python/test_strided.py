# SPDX-License-Identifier: Apache-2.0
"""Results that go to a strided ``out``: packed, and written back, in every way to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

P = 3
Call = Callable[..., Any]  # of a communicator, out and options


def mine(comm: cl.Communicator, rows: int = P) -> Any:
    return np.arange(rows * 2.0).reshape(rows, 2) + 100 * comm.rank


CALLS: dict[str, Call] = {
    "allreduce": lambda c, out, **o: c.allreduce(mine(c), out, **o),
    "reduce": lambda c, out, **o: c.reduce(mine(c), out, root=1, **o),
    "scan": lambda c, out, **o: c.scan(mine(c), out, **o),
    "exscan": lambda c, out, **o: c.exscan(mine(c), out, **o),
    "reduce_scatter": lambda c, out, **o: c.reduce_scatter(mine(c), out, **o),
    "reduce_scatterv": lambda c, out, **o: c.reduce_scatterv(mine(c), [1, 0, 2], out, **o),
    "allgather": lambda c, out, **o: c.allgather(mine(c), out, **o),
    "allgatherv": lambda c, out, **o: c.allgatherv(mine(c), None, out, **o),
    "gather": lambda c, out, **o: c.gather(mine(c), out, root=1, **o),
    "gatherv": lambda c, out, **o: c.gatherv(mine(c), [P] * P, out, root=1, **o),
    "scatter": lambda c, out, **o: c.scatter(mine(c), out, root=1, **o),
    "scatterv": lambda c, out, **o: c.scatterv(
        mine(c) if c.rank == 1 else None, [1, 0, 2], out, root=1, **o
    ),
    "alltoall": lambda c, out, **o: c.alltoall(mine(c), out, **o),
    "alltoallv": lambda c, out, **o: c.alltoallv(mine(c), [1] * P, None, out, **o),
}


def shape(name: str, rank: int) -> tuple[int, int]:
    """Return the shape of a rank's result."""
    if name in ("reduce_scatterv", "scatterv"):
        return ([1, 0, 2][rank], 2)
    if name in ("reduce_scatter", "scatter"):
        return (1, 2)
    return (P * P, 2) if "gather" in name else (P, 2)


def layouts(size: tuple[int, int]) -> dict[str, Any]:
    """Return arrays of a shape that are not contiguous, on memory of sevens."""
    rows, columns = size
    return {
        "every other": np.full((2 * rows, 2 * columns), 7.0)[::2, ::2],
        "transposed": np.full((columns, rows), 7.0).T,
        "backwards": np.full(size, 7.0)[::-1, ::-1],
    }


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("layout", ["every other", "transposed", "backwards"])
def test_a_strided_out_gets_what_a_plain_one_gets(name: str, layout: str) -> None:
    call = CALLS[name]

    def run(comm: cl.Communicator) -> None:
        size = shape(name, comm.rank)
        plain, out = np.full(size, 7.0), layouts(size)[layout]
        call(comm, plain)
        got = call(comm, out)
        assert got is out or (got is None and comm.rank != 1)
        np.testing.assert_array_equal(out, plain)
        later = layouts(size)[layout]
        call(comm, later, async_op=True).wait()
        np.testing.assert_array_equal(later, plain)
        together = layouts(size)[layout]
        with comm.group():
            call(comm, together)
            call(comm, out)
        np.testing.assert_array_equal(together, plain)

    on_ranks(P, run)


def test_what_lies_between_is_left_alone() -> None:
    def run(comm: cl.Communicator) -> None:
        around = np.full((4, 6), 7, ml_dtypes.bfloat16)
        comm.allreduce(np.ones((2, 3), ml_dtypes.bfloat16), around[1:3, ::2])
        wanted = np.full((4, 6), 7.0)
        wanted[1:3, ::2] = P
        np.testing.assert_array_equal(around.astype(float), wanted)

    on_ranks(P, run)


def test_input_and_result_may_alternate_in_memory() -> None:
    def run(comm: cl.Communicator) -> None:
        both = np.ones(10)
        comm.allreduce(both[::2], both[1::2])
        assert both.tolist() == [1.0, P] * 5
        comm.allreduce(both[::2], both[::2])
        assert both.tolist() == [P, P] * 5

    on_ranks(P, run)


@pytest.mark.parametrize("name", CALLS)
def test_a_persistent_call_refuses_it(name: str) -> None:
    def run(comm: cl.Communicator) -> None:
        size = shape(name, comm.rank)
        gets = name not in ("reduce", "gather", "gatherv") or comm.rank == 1
        if gets and 0 not in size:
            with pytest.raises(cl.InvalidArgumentError, match="takes contiguous arrays"):
                CALLS[name](comm.persistent, layouts(size)["every other"])
        elif name in ("allgatherv", "alltoallv"):
            raise AssertionError("all ranks ask for lengths together")

    on_ranks(P, run)
