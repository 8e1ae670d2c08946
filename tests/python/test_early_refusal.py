# SPDX-License-Identifier: Apache-2.0
"""What is wrong with one call of several is told before any of them is made."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks, on_wired_ranks

# Of each the second one is wrong.
WRONG: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "avg of int32": ([np.ones(300_000), np.ones(2, "int32")], {"op": "avg"}),
    "bxor of float64": ([np.ones(3, "int32"), np.ones(2)], {"op": "bxor"}),
    "int32 is not accumulated": (
        [np.ones(3, "float32"), np.ones(2, "int32")],
        {"accumulate": "float64"},
    ),
    "max of complex64": ([np.ones(3), np.ones(2, "complex64")], {"op": "max"}),
}


def make(comm: cl.Communicator, xs: list[Any], together: str, options: dict[str, Any]) -> None:
    if together == "group":
        with comm.group():
            for x in xs:
                comm.allreduce(x, **options)
    else:
        comm.allreduce(xs, async_op=together == "handles", **options)


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("together", ["structure", "group", "handles"])
def test_nothing_was_sent(among: Any, what: str, together: str) -> None:
    arrays, options = WRONG[what]

    def work(comm: cl.Communicator) -> None:
        mine = [x * (comm.rank + 1) for x in arrays]
        before, sequence = [x.copy() for x in mine], comm.sequence
        with pytest.raises(cl.InvalidArgumentError, match=what):
            make(comm, mine, together, options)
        assert comm.sequence == sequence
        for x, was in zip(mine, before, strict=True):
            np.testing.assert_array_equal(x, was)
        assert comm.allreduce(np.ones(1))[0] == 2  # and it works on

    among(2, work)


def test_a_group_within_a_job_and_beside_one_in_flight() -> None:
    def work(comm: cl.Communicator) -> float:
        flying = comm.allreduce(np.ones(100_000), async_op=True)
        with comm.group():
            handle = comm.allreduce(np.ones(3), async_op=True)
            with pytest.raises(cl.InvalidArgumentError, match="avg of int32"):
                comm.allreduce(np.ones(3, "int32"), op="avg", async_op=True)
        return float(flying.wait()[0] + handle.wait()[0])

    assert on_ranks(2, work) == [4, 4]


def test_a_list_in_itself_is_refused() -> None:
    (comm,) = cl.local(1)
    x: list[Any] = [np.ones(1)]
    x.append(x)
    with comm, pytest.raises(cl.InvalidArgumentError, match="x is a list that contains itself"):
        comm.allreduce(x)


def test_what_no_machine_has_room_for_is_this_librarys_error() -> None:
    (comm,) = cl.local(1)
    endless = np.broadcast_to(np.float32(1), (1 << 45,))
    with comm, pytest.raises(cl.OutOfMemoryError, match="no memory for a copy of its"):
        comm.allreduce(endless)


class Unclear:
    """Says by DLPack where it is, in no way that makes sense."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("nobody asks")

    def __dlpack_device__(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [5, (), ("gpu", 0), RuntimeError("lost")])
def test_objects_that_do_not_say_where_they_are(answer: Any) -> None:
    (comm,) = cl.local(1)
    with comm, pytest.raises(cl.InvalidArgumentError, match="does not say by DLPack where it is"):
        comm.allreduce(Unclear(answer))


def test_a_call_within_an_operation_is_told_where_it_is() -> None:
    said: list[str] = []
    # Each rank's own: another one's call may be over by then, and it would wait for this rank.
    mine = threading.local()

    def within(a: Any, b: Any) -> Any:
        with pytest.raises(cl.InvalidArgumentError) as told:
            mine.comm.barrier()
        said.append(str(told.value))
        return a + b

    add = cl.op(within, name="within", commutative=True)

    def rank(comm: cl.Communicator) -> None:
        mine.comm = comm
        comm.allreduce(np.ones(2), op=add)

    on_ranks(2, rank)
    assert said
    assert all("or this one is, in whose operation or signal handler" in text for text in said)
