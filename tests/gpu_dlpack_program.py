# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_gpu_arrays.py runs of arrays with DLPack alone: on the emulated GPU."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

import ml_dtypes  # noqa: F401  bfloat16
import numpy as np

import collectives as cl
from collectives import gpu_dlpack
from collectives.arrays import DTYPES
from tests.gpu_breadth_program import taken
from tests.gpu_program import GpuArray, on_all, refused


class Tensor(ctypes.Structure):
    """DLTensor, of dlpack.h, and what follows it in a DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


def capsule_of(what: ctypes.Structure, name: bytes) -> Any:
    """Return a capsule, which goes without a word."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.addressof(what), name, None)


class Exported:
    """An array that shows itself by DLPack alone, of a version before the first."""

    def __init__(self, values: Any) -> None:
        self.held = GpuArray(values)
        self.streams: list[int] = []
        self.shape = (ctypes.c_int64 * self.held.seen.ndim)(*self.held.seen.shape)
        at = self.held.__cuda_array_interface__["data"][0]
        self.tensor = Tensor(at - 8, 2, 0, self.held.seen.ndim, 2, 32, 1, self.shape, None, 8)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, stream: int) -> Any:
        self.streams.append(stream)
        return capsule_of(self.tensor, b"dltensor")


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, which begins with what was added."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


class ExportedNow(Exported):
    """The same of version 1, which can say that it must not be written."""

    def __init__(self, values: Any, flags: int, major: int = 1) -> None:
        super().__init__(values)
        self.whole = Versioned(major, 0, None, None, flags, self.tensor)

    def __dlpack__(self, stream: int, max_version: tuple[int, int] = (0, 0)) -> Any:
        assert max_version == (1, 0)
        return capsule_of(self.whole, b"dltensor_versioned")


def dlpack() -> None:
    def work(comm: cl.Communicator) -> None:
        x = Exported(np.full((20, 3), comm.rank, "f4"))
        assert comm.allreduce(x) is x
        assert (x.held.seen == 3).all()
        with cl.on_stream(12):
            comm.allreduce(x)
        assert (x.held.seen == 9).all()
        assert x.streams == [1, 12]
        y = ExportedNow(np.full((20, 3), comm.rank, "f4"), 0)
        comm.allreduce(x, y)
        assert (y.held.seen == 27).all()
        fixed, later = ExportedNow(np.zeros(3, "f4"), 1), ExportedNow(np.zeros(3, "f4"), 0, 2)
        wrong = cl.InvalidArgumentError
        refused(lambda: comm.allreduce(y, fixed), wrong, "out is read-only")
        refused(lambda: comm.allreduce(later), wrong, "version 2 of DLPack")
        x.tensor.bits = 24
        refused(lambda: comm.allreduce(x), cl.InvalidArgumentError, "kind 2 of DLPack with 24 bits")

    on_all(work)


def take_over(capsule: Any) -> None:
    """Do as who takes the memory: rename the capsule, call the deleter, on any thread."""
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
    versioned = "versioned" in repr(capsule)
    name = b"dltensor_versioned" if versioned else b"dltensor"
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = pointer(capsule, name)
    what = Versioned.from_address(at) if versioned else Tensor.from_address(at)
    assert rename(capsule, b"used_" + name) == 0
    delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(what.deleter)
    thread = threading.Thread(target=delete, args=(at,))
    thread.start()
    thread.join()


def dlpack_of_ours() -> None:
    gc.freeze()  # what is there already is not looked through each time
    comm, *_ = cl.local(1)
    shapes: list[Any] = [(), (0,), (5,), (2, 3, 4)]
    versions: list[Any] = [None, (0, 8), (1, 0), (1, 3)]
    for dtype in ("float32", "int8", "uint64", "complex128", "bool", "float16", "bfloat16"):
        for shape in shapes:
            for version in versions:
                x = comm.empty(shape, dtype, device="cuda:1")
                assert x.__dlpack_device__() == (2, 1)
                shows = x.__dlpack__(stream=5, max_version=version)
                assert ("versioned" in repr(shows)) == (version is not None and version[0] == 1)
                found = gpu_dlpack.shown(SimpleNamespace(__dlpack__=lambda s=shows, **_: s), 1, "x")
                at = x.__cuda_array_interface__["data"][0]
                strides = np.empty(shape, "i1").strides if 0 not in shape else (1,)
                before = taken()
                assert found[:6] == (at, shape, strides, DTYPES[dtype], 1, False)
                del x, found
                gc.collect()
                assert taken() == before  # the capsule holds it
                if version in (None, (1, 3)):
                    take_over(shows)
                del shows
                gc.collect()
                assert not taken()
    x = comm.empty(3, "f4", device="cuda")
    for wrong, word in (
        ({"copy": True}, "no copy"), ({"dl_device": (1, 0)}, "is on GPU 0"),
        ({"dl_device": (2, 1)}, "is on GPU 0"), ({"stream": 0}, "is 0"), ({"stream": -2}, "-2"),
        ({"stream": "x"}, "is 'x'"), ({"stream": True}, "is True"),
    ):  # fmt: skip
        refused(partial(x.__dlpack__, **wrong), BufferError, word)
    for right in ({"dl_device": (2, 0)}, {"stream": None}, {"stream": -1}, {"copy": False}):
        assert "dltensor" in repr(x.__dlpack__(**right))
    pairs = comm.empty(3, np.dtype([("value", "f4"), ("index", "i4")]), device="cuda")
    refused(pairs.__dlpack__, BufferError, "DLPack has no")
    swapped = cl.DeviceArray((3,), np.dtype("f4").newbyteorder(), 0)
    refused(swapped.__dlpack__, BufferError, "DLPack has no")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, flush=True)
        globals()[name]()
