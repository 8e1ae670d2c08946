# SPDX-License-Identifier: Apache-2.0
"""The short way and the long one pass the same; arrays of a torch and a CuPy that are made up."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from collectives import nccl
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.nccl import calls, quick
from collectives.nccl.arrays import CODES
from collectives.plain_calls import run_nccl_allreduce
from tests.nccl.standin import Standin


class Dtype:
    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size

    def __repr__(self) -> str:
        return f"torch.{self.name}"


FLOAT32, BFLOAT16, INT16 = Dtype("float32", 4), Dtype("bfloat16", 2), Dtype("int16", 2)


class Tensor:
    """As much of a CUDA tensor as is asked of one."""

    requires_grad = False
    layout = "strided"

    def __init__(self, address: int = 0x1000, dtype: Dtype = FLOAT32, **other: Any) -> None:
        self._address, self.dtype = address, dtype
        self.device = SimpleNamespace(index=0, type="cuda")
        self.is_cuda, self.is_cpu = True, False
        self._contiguous = True
        self.__dict__.update(other)

    def data_ptr(self) -> int:
        return self._address

    def numel(self) -> int:
        return 6

    def element_size(self) -> int:
        return self.dtype.size

    def get_device(self) -> int:
        return int(self.device.index)

    def is_contiguous(self) -> bool:
        return self._contiguous

    def is_neg(self) -> bool:
        return False

    is_conj = is_neg


@pytest.fixture
def _torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a torch be loaded whose current stream is 0x70."""
    made = SimpleNamespace(
        Tensor=Tensor,
        strided="strided",
        float32=FLOAT32,
        bfloat16=BFLOAT16,
        int16=INT16,
        is_grad_enabled=lambda: True,
        cuda=SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=0x70)),
        _C=SimpleNamespace(),
    )
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setattr(quick, "_torch_codes", {})


class CupyArray:
    """As much of an array of CuPy as is asked of one."""

    def __init__(
        self, address: int = 0x3000, dtype: str = "float32", contiguous: bool = True
    ) -> None:
        self.dtype, self.size = np.dtype(dtype), 6
        self.flags = SimpleNamespace(c_contiguous=contiguous)
        self.data = SimpleNamespace(ptr=address, device_id=0)
        self.device = SimpleNamespace(id=0)
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (6,),
            "strides": None if contiguous else (8,),
            "typestr": self.dtype.str,
            "version": 3,
            "stream": 0x80,
        }


@pytest.fixture
def _cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a CuPy be loaded whose current stream is 0x80."""
    stream = SimpleNamespace(ptr=0x80)
    cuda = SimpleNamespace(get_current_stream=lambda: stream)
    made = SimpleNamespace(ndarray=CupyArray, cuda=cuda)
    monkeypatch.setitem(sys.modules, "cupy", made)


def both_ways(standin: Standin, comm: nccl.Communicator, x: Any, out: Any, op: Any) -> list[str]:
    """Make a call both ways, which must be one; return what was called."""
    comm.run(calls.allreduce(comm, x, out, op, None))  # which meets dtypes of ml_dtypes, too
    assert quick.allreduce(comm, x, out, op)
    long, short = standin.log()
    assert short == long
    return short.split()


@pytest.mark.usefixtures("_torch")
@pytest.mark.parametrize(("dtype", "code"), [(FLOAT32, "7"), (BFLOAT16, "9")])
def test_cuda_tensors(standin: Standin, third: nccl.Communicator, dtype: Dtype, code: str) -> None:
    x, out = Tensor(dtype=dtype), Tensor(0x2000, dtype)
    said = both_ways(standin, third, x, out, "max")
    assert said[:6] == ["ncclAllReduce", "0x1000", "0x2000", "6", "dtype", code]
    assert said[-2:] == ["stream", "0x70"]
    both_ways(standin, third, x, None, "sum")
    assert third.send(x, 1) is x
    assert third.recv(out, 0) is out
    assert third.allreduce(x, out) is out
    with cl.on_stream(0x33):
        third.allreduce(x)
    third.allreduce(x, stream=0x34)
    assert [said.split()[-1] for said in standin.log()] == ["0x70"] * 3 + ["0x33", "0x34"]


@pytest.mark.usefixtures("_cupy")
def test_arrays_of_cupy(standin: Standin, third: nccl.Communicator) -> None:
    said = both_ways(standin, third, CupyArray(), CupyArray(0x4000), "min")
    assert said[:4] == ["ncclAllReduce", "0x3000", "0x4000", "6"]
    assert said[-2:] == ["stream", "0x80"]
    assert not quick.allreduce(third, CupyArray(dtype="int16"), None, "sum")
    with cl.on_stream(0x33):
        third.send(CupyArray(), 1)
    assert standin.log()[0].endswith("stream 0x33")
    with pytest.raises(InvalidArgumentError, match="does not lie in one piece"):
        third.allreduce(CupyArray(contiguous=False))


@pytest.mark.usefixtures("_torch")
def test_tensors_that_are_not_plain(standin: Standin, third: nccl.Communicator) -> None:
    third.broadcast(Tensor(dtype=INT16))  # as bytes
    assert " 12 dtype 1 " in standin.log()[0]
    elsewhere = SimpleNamespace(index=1, type="cuda")
    for other, kind, said in (
        ({"requires_grad": True}, InvalidArgumentError, r"requires grad: pass x.detach\(\)"),
        ({"_contiguous": False}, InvalidArgumentError, r"in one piece: pass x.contiguous\(\)"),
        ({"layout": "coo"}, InvalidArgumentError, r"coo tensor: pass x.to_dense\(\)"),
        ({"device": elsewhere}, InvalidArgumentError, "is on GPU 1, and this rank's is GPU 0"),
        ({"dtype": INT16}, InvalidArgumentError, "no arithmetic on int16"),
        ({"is_cuda": False}, UnsupportedError, "pass one of a CUDA GPU"),
    ):
        x = Tensor(**other)
        assert not quick.allreduce(third, x, None, "sum")
        with pytest.raises(kind, match=said):
            third.allreduce(x)
    assert standin.log() == []


@pytest.mark.usefixtures("_torch")
def test_the_current_stream_without_an_object_of_it(
    standin: Standin, third: nccl.Communicator
) -> None:
    sys.modules["torch"]._C._cuda_getCurrentRawStream = lambda device: 0x71 + device
    third.allreduce(Tensor())
    assert standin.log()[0].endswith("stream 0x71")


@pytest.mark.parametrize("dtype", [*CODES])
def test_arrays_of_numpy(standin: Standin, third: nccl.Communicator, dtype: str) -> None:
    dtype = getattr(np, dtype, None) or getattr(ml_dtypes, dtype)
    x = np.zeros((2, 3), dtype)
    both_ways(standin, third, x, np.zeros((2, 3), dtype), "avg")
    both_ways(standin, third, x, None, "sum")


def test_what_is_not_plain_is_left_to_the_long_way(
    standin: Standin, third: nccl.Communicator
) -> None:
    x = np.zeros(8, "float32")
    frozen = np.zeros(8, "float32")
    frozen.flags.writeable = False
    for one, out, op in (
        (x[::2], None, "sum"),
        (frozen, None, "sum"),
        (x, frozen, "sum"),
        (x, np.zeros(7, "float32"), "sum"),
        (x, np.zeros(8), "sum"),
        (x[:4], x[2:6], "sum"),
        (np.zeros(8, "int16"), None, "sum"),
        (x.view(np.recarray), None, "sum"),
        (x.data, None, "sum"),
        (x, None, "median"),
        (x, None, ["sum"]),
    ):
        assert not quick.allreduce(third, one, out, op)
    for peer in (4, -1, True, "1"):
        assert not quick.message(third, "ncclSend", x, peer, 4)
    with nccl.group():
        assert not quick.allreduce(third, x, None, "sum")
    assert quick.allreduce(third, x[:4], x[4:], "sum")
    third.close()
    assert not quick.allreduce(third, x, None, "sum")
    assert [said.split()[0] for said in standin.log()][2:] == ["ncclAllReduce", "ncclCommDestroy"]


def test_errors_and_what_is_in_progress(standin: Standin) -> None:
    comm = nccl.init_rank(2, nccl.unique_id(), 0, config=nccl.Config(blocking=False))
    x = np.zeros(2)
    standin.progress(2)
    assert quick.allreduce(comm, x, None, "sum")
    assert comm.busy
    assert not quick.message(comm, "ncclSend", x, 1, 2)
    comm.wait()
    for function, call in (
        ("ncclSend", partial(comm.send, x, 1)),
        ("ncclAllReduce", partial(comm.allreduce, x)),
    ):
        standin.fail(function, 6)
        with pytest.raises(nccl.NcclRemoteError):
            call()
    comm.close()


def test_the_short_way_in_c_takes_five() -> None:
    with pytest.raises(TypeError, match="5 arguments"):
        run_nccl_allreduce(0, 0, np.zeros(1))  # type: ignore[call-arg]
