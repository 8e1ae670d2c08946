# SPDX-License-Identifier: Apache-2.0
"""Collectives: what NCCL is passed, what comes back, and what is refused before it is called."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from collectives import nccl
from collectives.errors import ClosedError, InvalidArgumentError
from collectives.nccl.arrays import CODES
from tests.nccl.standin import Standin

X, OUT = np.arange(12.0, dtype="float32"), np.zeros(12, "float32")
SMALL = np.zeros(3, "float32")
LONG = np.zeros(48, "float32")


def line(name: str, send: Any, recv: Any, count: int, op: int = -1, root: int = -1) -> str:
    """The line of the log of a call of rank 2 on float32."""
    a, b = (0 if one is None else one.ctypes.data for one in (send, recv))
    # As C writes addresses: null has no 0x.
    return f"{name} {a:#x} {b:#x} {count} dtype 7 op {op} root {root} rank 2 stream 0".replace(
        " 0x0 ", " 0 "
    )


CASES: list[tuple[Callable[[nccl.Communicator], Any], Any, str]] = [
    (lambda c: c.allreduce(X, OUT), OUT, line("ncclAllReduce", X, OUT, 12, 0)),
    (lambda c: c.allreduce(X, op="avg"), X, line("ncclAllReduce", X, X, 12, 4)),
    (lambda c: c.reduce(X, OUT, root=2, op="max"), OUT, line("ncclReduce", X, OUT, 12, 2, 2)),
    (lambda c: c.reduce(X, root=1, op="min"), X, line("ncclReduce", X, None, 12, 3, 1)),
    (lambda c: c.broadcast(X, root=3), X, line("ncclBroadcast", X, X, 12, root=3)),
    (lambda c: c.broadcast(X, OUT, root=2), OUT, line("ncclBroadcast", X, OUT, 12, root=2)),
    (lambda c: c.broadcast(None, OUT, root=0), OUT, line("ncclBroadcast", OUT, OUT, 12, root=0)),
    (lambda c: c.allgather(X, LONG), LONG, line("ncclAllGather", X, LONG, 12)),
    (lambda c: c.allgather(LONG[24:36], LONG), LONG, line("ncclAllGather", LONG[24:], LONG, 12)),
    (lambda c: c.reduce_scatter(X, SMALL, op="prod"), SMALL,
     line("ncclReduceScatter", X, SMALL, 3, 1)),
    (lambda c: c.reduce_scatter(X, X[6:9]), X[6:9], line("ncclReduceScatter", X, X[6:], 3, 0)),
    (lambda c: c.alltoall(X, OUT), OUT, line("ncclAlltoAll", X, OUT, 3)),
    (lambda c: c.gather(X, LONG, root=2), LONG, line("ncclGather", X, LONG, 12, root=2)),
    (lambda c: c.gather(X, root=0), X, line("ncclGather", X, None, 12, root=0)),
    (lambda c: c.scatter(X, SMALL, root=2), SMALL, line("ncclScatter", X, SMALL, 3, root=2)),
    (lambda c: c.scatter(None, SMALL, root=1), SMALL, line("ncclScatter", None, SMALL, 3, root=1)),
]  # fmt: skip


# Addresses would make other names in each process.
@pytest.mark.parametrize(("call", "result", "said"), CASES, ids=range(len(CASES)))
def test_arguments_and_results(
    standin: Standin,
    third: nccl.Communicator,
    call: Callable[[nccl.Communicator], Any],
    result: Any,
    said: str,
) -> None:
    returned = call(third)
    assert np.shares_memory(returned, result)
    assert returned.shape == result.shape
    assert standin.log() == [said]


def test_messages(standin: Standin, third: nccl.Communicator) -> None:
    assert third.send(X, 1) is X
    assert third.recv(OUT, 3, stream=7) is OUT
    assert standin.log() == [
        f"ncclSend {X.ctypes.data:#x} 12 dtype 7 peer 1 rank 2 stream 0",
        f"ncclRecv {OUT.ctypes.data:#x} 12 dtype 7 peer 3 rank 2 stream 0x7",
    ]


def test_one_rank_gets_what_it_hands_in(comm: nccl.Communicator) -> None:
    for call in (comm.allreduce, comm.reduce, comm.broadcast, comm.allgather, comm.alltoall,
                 comm.reduce_scatter, comm.gather, comm.scatter):  # fmt: skip
        out = np.zeros_like(X)
        assert call(X, out) is out
        assert out.tolist() == X.tolist()


@pytest.mark.parametrize("name", CODES)
def test_dtypes(standin: Standin, comm: nccl.Communicator, name: str) -> None:
    x = np.ones(3, getattr(ml_dtypes, name, name))
    comm.allreduce(x)
    assert f" 3 dtype {CODES[name]} op 0 " in standin.log()[0]


@pytest.mark.parametrize(("name", "unit"), [("int16", 2), ("bool", 1), ("complex128", 16)])
def test_dtypes_that_nccl_lacks_move_as_bytes(
    standin: Standin, comm: nccl.Communicator, name: str, unit: int
) -> None:
    x, out = np.ones(3, name), np.zeros(3, name)
    comm.allgather(x, out)
    assert out.tolist() == x.tolist()
    assert f" {3 * unit} dtype 1 op -1 " in standin.log()[0]
    with pytest.raises(InvalidArgumentError, match=f"allreduce: NCCL has no arithmetic on {name}"):
        comm.allreduce(x)


def test_empty_arrays(standin: Standin, comm: nccl.Communicator) -> None:
    x = np.zeros((0, 3))
    assert comm.allreduce(x) is x
    assert " 0 dtype 8 " in standin.log()[0]


READ_ONLY = np.zeros(12, "float32")
READ_ONLY.flags.writeable = False

WRONG: list[tuple[Callable[[nccl.Communicator], Any], str]] = [
    (lambda c: c.allreduce(X[::2]), "allreduce: x does not lie in one piece"),
    (lambda c: c.allreduce(READ_ONLY), "allreduce: x is read-only"),
    (lambda c: c.allreduce(X, READ_ONLY), "allreduce: out is read-only"),
    (lambda c: c.allreduce(X, SMALL), "x has 12 elements, so out needs 12, and has 3"),
    (lambda c: c.allreduce(X, np.zeros(12)), "x has dtype float32, out float64"),
    (lambda c: c.allreduce(X, op="mean"), "allreduce: op 'mean' is unknown"),
    (lambda c: c.allreduce(X[:8], X[4:]), "allreduce: x and out share memory otherwise than in"),
    (lambda c: c.allreduce("words"), "allreduce: x is of type str"),
    (lambda c: c.allreduce(X, stream="fast"), "stream is 'fast'"),
    (lambda c: c.reduce(X, root=4), "reduce: root is 4: give a rank, 0 to 3"),
    (lambda c: c.reduce(X, root=True), "reduce: root is True"),
    (lambda c: c.broadcast(READ_ONLY, root=2), "broadcast: x is read-only"),
    (lambda c: c.allgather(X, OUT), "so out needs 48, and has 12"),
    (lambda c: c.allgather(X, None), "allgather: out is needed here"),
    (lambda c: c.allgather(LONG[:12], LONG), "allgather: x and out share memory otherwise"),
    (lambda c: c.reduce_scatter(X, OUT), "so out needs 3, and has 12"),
    (lambda c: c.reduce_scatter(X, X[:3]), "reduce_scatter: x and out share memory otherwise"),
    (lambda c: c.alltoall(X, X), "alltoall: x and out share memory, which they must not"),
    (lambda c: c.alltoall(X[:6], OUT[:6]), "x has 6 elements, which 4 ranks cannot share equally"),
    (lambda c: c.gather(X, None, root=2), "gather: out is needed here"),
    (lambda c: c.scatter(None, OUT, root=2), "scatter: x is needed here"),
    (lambda c: c.send(X, 4), "send: peer is 4"),
    (lambda c: c.recv(READ_ONLY, 1), "recv: out is read-only"),
]


@pytest.mark.parametrize(("call", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_told_before_nccl_is_called(
    standin: Standin,
    third: nccl.Communicator,
    call: Callable[[nccl.Communicator], Any],
    said: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call(third)
    assert said in str(caught.value)
    assert standin.log() == []


def test_scaled_sums(standin: Standin, comm: nccl.Communicator) -> None:
    x = np.arange(3.0)
    with comm.pre_mul_sum(0.5, "float64") as half:
        assert comm.allreduce(x, np.zeros(3), op=half).tolist() == [0, 0.5, 1]
        with pytest.raises(InvalidArgumentError, match="was made for float64, and x has float32"):
            comm.allreduce(X, op=half)
        with (
            nccl.init_rank(1, nccl.unique_id(), 0) as other,
            pytest.raises(InvalidArgumentError, match="op was made for another communicator"),
        ):
            other.allreduce(x, op=half)
    with pytest.raises(ClosedError, match="op was closed"):
        comm.allreduce(x, op=half)
    log = standin.log()
    assert log[0] == "ncclRedOpCreatePreMulSum dtype 8 residence 1 bytes 0000"
    assert log[-1] == "ncclRedOpDestroy 5"
    comm.pre_mul_sum(1.5, ml_dtypes.bfloat16)  # 0x3fc0
    comm.pre_mul_sum(3, np.int32)
    assert standin.log() == [
        "ncclRedOpCreatePreMulSum dtype 9 residence 1 bytes c03f",
        "ncclRedOpCreatePreMulSum dtype 2 residence 1 bytes 0300",
    ]
    with pytest.raises(InvalidArgumentError, match="dtype 'int16' is unknown"):
        comm.pre_mul_sum(1, "int16")
    with pytest.raises(InvalidArgumentError, match="factor is 'two'"):
        comm.pre_mul_sum("two", "int32")


@pytest.mark.parametrize(
    ("factor", "dtype"),
    [(300, "int8"), (-1, "uint8"), (2.5, "int32"), (2**70, "int64"), (np.inf, "int32"),
     (2**63, "int64"), (-(2**63) - 1, "int64"), (np.float32(0.5), "uint64"), (10**400, "int32"),
     (1e39, "float32"), (-1e39, "bfloat16"), (10**30, "float16"), (500, "float8_e4m3fn"),
     (np.inf, "float8_e4m3fn"), (1e6, "float8_e5m2"), (10**400, "float64")],
)  # fmt: skip
def test_factors_that_a_dtype_does_not_hold(
    standin: Standin, comm: nccl.Communicator, factor: Any, dtype: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidArgumentError, match="pre_mul_sum: factor is "):
            comm.pre_mul_sum(factor, dtype)
    assert standin.log() == []


@pytest.mark.parametrize(
    ("factor", "dtype", "bits"),
    [(255, "uint8", "ff00"), (-128.0, "int8", "8000"), (2**64 - 1, "uint64", "ffff"),
     (2**53 + 1, "int64", "0100"), (np.int64(-(2**63) + 7), "int64", "0700"),
     (np.float32(3), np.int32, "0300"), (65504, "float16", "ff7b"), (np.inf, "float16", "007c"),
     (0.1, "float32", "cdcc"), (2**70, "bfloat16", "8062"), (448, "float8_e4m3fn", "7e00")],
)  # fmt: skip
def test_factors_that_it_holds(
    standin: Standin, comm: nccl.Communicator, factor: Any, dtype: Any, bits: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comm.pre_mul_sum(factor, dtype)
    assert standin.log()[0].endswith(f"bytes {bits}")


def test_persistent_calls(standin: Standin, third: nccl.Communicator) -> None:
    bound = third.persistent
    calls = [bound.allreduce(X, OUT, op="max", stream=3), bound.reduce(X, root=1),
             bound.broadcast(X), bound.allgather(X, LONG), bound.reduce_scatter(X, SMALL),
             bound.alltoall(X, OUT), bound.send(X, 1), bound.recv(OUT, 1)]  # fmt: skip
    assert standin.log() == []
    for call in calls:
        call()
    first = standin.log()
    assert len(first) == len(calls)
    assert first[0].endswith("op 2 root -1 rank 2 stream 0x3")
    assert calls[0]() is OUT
    with nccl.group():
        calls[0]()
    assert standin.log() == [first[0], "ncclGroupStart", first[0], "ncclGroupEnd"]
    standin.fail("ncclAllReduce", 5)
    with pytest.raises(nccl.NcclInvalidUsageError):
        calls[0]()
    third.close()
    with pytest.raises(ClosedError):
        calls[0]()
