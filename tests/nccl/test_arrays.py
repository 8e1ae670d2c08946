# SPDX-License-Identifier: Apache-2.0
"""Arrays and streams of a GPU, as their owners show them. No memory of theirs is touched."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from collectives import nccl
from collectives.errors import InvalidArgumentError
from tests.nccl.standin import Standin


class OnGpu:
    """Shows memory at a made-up address, as CuPy's arrays do."""

    def __init__(self, address: int = 0x10000, shape: tuple[int, ...] = (4,), **shown: Any) -> None:
        dtype = shown.pop("dtype", "float32")
        self.device = shown.pop("device", 0)
        self.dtype = np.dtype(dtype)
        self.__cuda_array_interface__ = {
            "data": (address, shown.pop("read_only", False)),
            "shape": shape,
            "typestr": self.dtype.str,
            "version": 3,
            "stream": 1,
            **shown,
        }


class Stream:
    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._pointer


class CupyStream:
    ptr = 0x55


class TorchStream:
    cuda_stream = 0x66


def test_an_array_of_a_gpu_goes_to_its_owners_stream(
    standin: Standin, third: nccl.Communicator
) -> None:
    x = OnGpu(stream=0x77)
    assert third.allreduce(x) is x
    assert standin.log() == [
        "ncclAllReduce 0x10000 0x10000 4 dtype 7 op 0 root -1 rank 2 stream 0x77"
    ]


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (0, "0"),
        (9, "0x9"),
        (np.int64(9), "0x9"),
        (Stream(0x44), "0x44"),
        (CupyStream, "0x55"),
        (TorchStream, "0x66"),
    ],
)
def test_streams_that_are_given(
    standin: Standin, third: nccl.Communicator, stream: Any, handle: str
) -> None:
    third.allreduce(OnGpu(), stream=stream)
    assert standin.log()[0].endswith(f"stream {handle}")


def test_the_stream_of_a_block(standin: Standin, third: nccl.Communicator) -> None:
    with cl.on_stream(Stream(0x31)):
        third.send(OnGpu(), 0)
    assert standin.log()[0].endswith("stream 0x31")


def test_owners_with_two_streams_need_one(third: nccl.Communicator) -> None:
    with pytest.raises(InvalidArgumentError, match=r"owners work on 2 streams: pass stream="):
        third.allreduce(OnGpu(stream=5), OnGpu(0x20000, stream=6))


@pytest.mark.parametrize(
    ("dtype", "code"), [("int64", 4), (ml_dtypes.bfloat16, 9), (ml_dtypes.float8_e5m2, 11)]
)
def test_dtypes_of_a_gpu(standin: Standin, third: nccl.Communicator, dtype: Any, code: int) -> None:
    third.allreduce(OnGpu(dtype=dtype))
    assert f" 4 dtype {code} " in standin.log()[0]


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (OnGpu(shape=(4, 2), strides=(4, 16)), "does not lie in one piece"),
        (OnGpu(read_only=True), "is read-only"),
        (OnGpu(mask=1), "has a mask"),
        (OnGpu(device=1), "is on GPU 1, and this rank's is GPU 0"),
        (OnGpu(dtype=">f4"), "has dtype >f4"),
    ],
    ids=["strides", "read-only", "mask", "device", "order"],
)
def test_arrays_that_are_refused(
    standin: Standin, third: nccl.Communicator, x: OnGpu, said: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        third.allreduce(x)
    assert f"allreduce: x {said}" in str(caught.value)
    assert standin.log() == []


def test_host_and_gpu_do_not_mix(third: nccl.Communicator) -> None:
    with pytest.raises(InvalidArgumentError, match="x and out are in memory of different devices"):
        third.allreduce(OnGpu(), np.zeros(4, "float32"))


def test_strides_that_say_nothing_are_taken(standin: Standin, third: nccl.Communicator) -> None:
    third.allreduce(OnGpu(shape=(2, 1, 2), strides=(8, 400, 4)))
    third.allreduce(OnGpu(shape=(0, 5), strides=(7, 7)))
    assert [said.split()[3] for said in standin.log()] == ["4", "0"]


class Exported:
    """Shows the memory of a NumPy array by DLPack alone, and says that it is on a GPU."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: int, max_version: tuple[int, int] = (1, 0)) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()


def test_dlpack(standin: Standin, third: nccl.Communicator) -> None:
    array = np.zeros((2, 3))
    x = Exported(array)
    with cl.on_stream(0x90):
        assert third.allreduce(x) is x
    assert x.streams == [0x90]
    assert standin.log()[0] == (
        f"ncclAllReduce {array.ctypes.data:#x} {array.ctypes.data:#x} 6 dtype 8 op 0 root -1 "
        "rank 2 stream 0x90"
    )
    with pytest.raises(InvalidArgumentError, match="does not lie in one piece"):
        third.allreduce(Exported(array.T))
