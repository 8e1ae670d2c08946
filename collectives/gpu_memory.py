# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory of a GPU that ``Communicator.empty`` makes, and who they are shown to."""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any

import numpy as np

from collectives._ffi import check, ffi, lib
from collectives.errors import InvalidArgumentError
from collectives.gpu_streams import LEGACY
from collectives.names import integer


class DeviceArray:
    """An array in memory of a GPU, which CuPy, torch, Numba and others take without a copy.

    It has ``shape``, ``dtype``, ``nbytes``, ``device`` (the number of the GPU),
    ``__cuda_array_interface__``: ``cupy.asarray(x)``, ``torch.as_tensor(x, device="cuda")``, and
    DLPack: ``torch.from_dlpack(x)``, ``cupy.from_dlpack(x)``. Its memory goes when nobody holds it
    any more, such views included. ``Communicator.empty`` makes them.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: int) -> None:
        """Take memory of a GPU. ``Communicator.empty`` does it."""
        self.shape, self.dtype, self.device = shape, dtype, device
        self.nbytes = math.prod(shape) * dtype.itemsize
        place = ffi.new("void **")
        check(lib.coll_gpu_allocate(device, max(self.nbytes, 1), place))
        self._address = int(ffi.cast("uintptr_t", place[0]))
        # At the exit of the interpreter the driver takes all of it back.
        weakref.finalize(self, lib.coll_gpu_free, device, place[0]).atexit = False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """What others need to take it, of version 3."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._address, False),
            "strides": None,
            "stream": LEGACY,
            "version": 3,
        }

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        """Show it by DLPack: ``torch.from_dlpack(x)``, ``cupy.from_dlpack(x)``, without a copy.

        ``stream``: where it will be used, a ``cudaStream_t`` as a number, 1 for the default stream,
        2 for that of the thread; it comes after what the default stream has been given. -1: after
        nothing. None: the default stream. Raises BufferError for ``copy=True``, another device and
        dtypes that DLPack has not.
        """
        from collectives import gpu_dlpack  # it loads ctypes, which no other call needs

        return gpu_dlpack.exported(self, self._address, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's number of CUDA, and that of the GPU."""
        return (2, self.device)

    def __repr__(self) -> str:
        """Tell shape, dtype and GPU."""
        return f"<DeviceArray {self.shape} {self.dtype} on GPU {self.device}>"


def number_of(device: Any) -> int:
    """Return the number of a GPU, of -1 for the host; ``device`` as ``empty`` takes it."""
    number = integer(device)
    if number is not None and number >= 0:
        return number
    kind, _, which = str(device).partition(":")
    if kind == "cpu" and not which:
        return -1
    if kind == "cuda" and not which:
        return _current()
    if kind != "cuda" or not which.isdecimal():
        raise InvalidArgumentError(
            f'empty: device is {device!r}: give "cuda", "cuda:1" or the like, the number of a '
            'GPU, or "cpu"'
        )
    return int(which)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], device: int) -> Any:
    """Return a new array of a dtype of NumPy's: CuPy's where that is loaded."""
    made, cupy = DeviceArray(shape, dtype, device), sys.modules.get("cupy")
    return made if cupy is None else cupy.asarray(made)


def empty_tensor(torch: Any, shape: tuple[int, ...], dtype: Any, device: int) -> Any:
    """Return a new tensor. Bytes are what torch is shown: not all its dtypes have a name."""
    size = torch.empty((), dtype=dtype).element_size()
    where, count = f"cuda:{device}", math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=dtype, device=where)
    held = DeviceArray((count * size,), np.dtype(np.uint8), device)
    return torch.as_tensor(held, device=where).view(dtype).view(shape)


def _current() -> int:
    """Return the GPU that the program works with."""
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if cupy is not None:
        return int(cupy.cuda.Device().id)
    if torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.current_device())
    return 0


def allocated(device: int, nbytes: int) -> Any:
    """Return a pointer to so many bytes of a GPU, or to one, which are freed with it.

    Raises CollectiveError where there is no room.
    """
    place = ffi.new("void **")
    check(lib.coll_gpu_allocate(device, max(nbytes, 1), place))
    return ffi.gc(place[0], lambda memory: lib.coll_gpu_free(device, memory))
