# SPDX-License-Identifier: Apache-2.0
"""Reductions that a program brings itself."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives._ffi import ffi, lib
from tests.python.conftest import run_threads
from tests.python.ranks import on_ranks

COUNT = 1000


def last_set(left: Any, right: Any) -> Any:
    """The last that is not zero: associative, and does not commute."""
    return np.where(right != 0, right, left)


def inputs(p: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(p).integers(0, 4, (p, COUNT)).astype(np.int64)


def folded(rows: Any) -> Any:
    result = rows[0]
    for row in rows[1:]:
        result = last_set(result, row)
    return result


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_a_python_callable_keeps_the_order_of_ranks(p: int) -> None:
    rows, op = inputs(p), cl.op(last_set, commutative=False)

    def run(comm: cl.Communicator) -> None:
        for algorithm in (None, "direct_two_shot", "recursive_doubling"):
            got = comm.allreduce(rows[comm.rank].copy(), op=op, algorithm=algorithm)
            np.testing.assert_array_equal(got, folded(rows))
        scan = comm.scan(rows[comm.rank].copy(), op=op)
        np.testing.assert_array_equal(scan, folded(rows[: comm.rank + 1]))
        reduced = comm.reduce(rows[comm.rank].copy(), op=op, root=p - 1)
        if reduced is not None:
            np.testing.assert_array_equal(reduced, folded(rows))
        with pytest.raises(cl.UnsupportedError, match="does not keep the order of ranks"):
            comm.allreduce(rows[comm.rank].copy(), op=op, algorithm="ring")

    on_ranks(p, run)


def test_c_functions_in_every_form() -> None:
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int32,
        ctypes.POINTER(ctypes.c_double),
        ctypes.POINTER(ctypes.c_double),
        ctypes.c_size_t,
        ctypes.c_int32,
        ctypes.c_void_p,
    )

    def hypotenuse_of(left: Any, right: Any, count: int, dtype: int, _: Any) -> int:
        if dtype != lib.COLL_FLOAT64:
            return 1
        for i in range(count):
            right[i] = (left[i] ** 2 + right[i] ** 2) ** 0.5
        return 0

    hypotenuse = signature(hypotenuse_of)
    address = ctypes.cast(hypotenuse, ctypes.c_void_p).value
    assert address is not None
    forms = [hypotenuse, address, ffi.cast("void *", address)]
    operations = [cl.op(form, commutative=True, name="hypotenuse") for form in forms]
    assert "hypotenuse" in repr(operations[0])

    def run(comm: cl.Communicator) -> None:
        for op in operations:
            got = comm.allreduce(np.full(5, comm.rank + 3.0), op=op)
            np.testing.assert_allclose(got, np.full(5, 5.0))

    on_ranks(2, run)


def test_what_a_callable_raises_ends_the_call_on_all_ranks() -> None:
    def broken(left: Any, right: Any) -> Any:
        raise ValueError("seven is right out")

    op = cl.op(broken, commutative=True)
    seen: list[str] = []

    def run(comm: cl.Communicator) -> None:
        with pytest.raises(cl.CollectiveError) as caught:
            comm.allreduce(np.ones(4), op=op)
        seen.append(str(caught.value))
        with pytest.raises(cl.CollectiveError):
            comm.barrier()

    on_ranks(3, run)
    assert len(seen) == 3
    assert any("seven is right out" in text for text in seen)


def test_results_of_another_shape_are_refused() -> None:
    op = cl.op(lambda left, right: left[:1], commutative=True)

    def run(comm: cl.Communicator) -> None:
        with pytest.raises(cl.CollectiveError):
            comm.allreduce(np.ones(4), op=op)

    on_ranks(2, run)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("f8", "c16"), ("f4", "c8"), ("i4", "f8"), ("?", "i8"), ("f8", "f4,i4"), ("f8", "O")],
)
def test_results_that_do_not_fit_the_operands_are_refused(dtype: str, result: str) -> None:
    op = cl.op(lambda left, right: np.zeros(len(left), result), commutative=True)
    seen: list[str] = []

    def run(comm: cl.Communicator) -> None:
        with pytest.raises(cl.CollectiveError) as caught:
            comm.allreduce(np.ones(4, dtype), op=op)
        seen.append(str(caught.value))

    on_ranks(2, run)
    assert any("it returned" in text and "return an array of" in text for text in seen)


@pytest.mark.parametrize(
    ("dtype", "result"), [("f8", "i4"), ("f4", "f8"), ("i8", "?"), ("c8", "f4")]
)
def test_results_that_fit_are_taken(dtype: str, result: str) -> None:
    op = cl.op(lambda left, right: np.ones(len(left), result), commutative=True)
    on_ranks(2, lambda comm: comm.allreduce(np.zeros(4, dtype), op=op).tolist() == [1] * 4 or 1 / 0)


def test_what_is_no_function() -> None:
    pointers = (ffi.NULL, ffi.cast("void *", 3), ffi.new("coll_message *")[0])
    for wrong in (3.5, "sum", -1, True, None, 0, 3, 4095, 2**64, *pointers):
        with pytest.raises(cl.InvalidArgumentError, match="op: "):
            cl.op(wrong, commutative=True)


def test_operations_are_given_back() -> None:
    for _ in range(300):
        cl.op(last_set, commutative=True)
        gc.collect(0)


def test_a_number_that_is_used_again_is_another_operation() -> None:
    comms = cl.local(2, timeout=20)
    held = [cl.op(np.add, commutative=True)]
    code = held[0].code

    def first(comm: cl.Communicator) -> None:
        got = comm.allreduce(np.ones(COUNT), op=held[0], algorithm="ring")
        np.testing.assert_array_equal(got, np.full(COUNT, 2.0))

    run_threads(comms, first)
    held.clear()
    gc.collect()
    later = cl.op(last_set, commutative=False)
    assert later.code == code

    def second(comm: cl.Communicator) -> None:
        with pytest.raises(cl.UnsupportedError, match="does not keep the order of ranks"):
            comm.allreduce(np.ones(COUNT), op=later, algorithm="ring")

    run_threads(comms, second)
    for comm in comms:
        comm.close()


def test_calls_that_come_later_keep_their_operation() -> None:
    def run(comm: cl.Communicator) -> None:
        x, y = np.ones(3), np.ones(3)
        with comm.group():
            comm.allreduce(x, op=cl.op(np.add, commutative=True))
            handle = comm.scan(y, op=cl.op(np.add, commutative=True), async_op=True)
        np.testing.assert_array_equal(handle.wait(10), np.ones(3))
        call = comm.persistent.allreduce(x, op=cl.op(np.add, commutative=True))
        gc.collect()
        np.testing.assert_array_equal(call(), np.ones(3))

    on_ranks(1, run)


def test_a_persistent_call_keeps_its_operation() -> None:
    held = [cl.op(np.add, commutative=True)]

    def run(comm: cl.Communicator) -> None:
        call = comm.persistent.allreduce(np.ones(3), op=held[0])
        comm.barrier()
        held.clear()
        comm.barrier()
        gc.collect()
        np.testing.assert_array_equal(call(), np.full(3, 2.0))

    on_ranks(2, run)
