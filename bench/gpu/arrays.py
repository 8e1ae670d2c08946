# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a GPU that need neither CuPy nor torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.gpu.yardsticks import Yardsticks
from collectives._ffi import check, ffi, lib


class GpuMemory:
    """So many bytes of a GPU, as long as somebody holds them."""

    def __init__(self, yard: Yardsticks, nbytes: int) -> None:
        """Take zeros; raise CollectiveError where the GPU has no room."""
        device, place = yard.device, ffi.new("void **")
        check(lib.coll_gpu_allocate(device, max(nbytes, 1), place))
        self._owned: Any = ffi.gc(place[0], lambda memory: lib.coll_gpu_free(device, memory))
        self.yard, self.nbytes = yard, nbytes
        self.address = int(ffi.cast("uintptr_t", place[0]))

    def close(self) -> None:
        """Give it back now."""
        self._owned = None


class GpuArray:
    """A vector in GPU memory, from ``offset`` bytes on, that shows itself as CuPy's do."""

    def __init__(self, memory: GpuMemory, n: int, dtype: Any, offset: int = 0) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.n, self.nbytes = n, n * self.dtype.itemsize
        if offset + self.nbytes > memory.nbytes:
            raise ValueError(f"{n} {self.dtype} at {offset} end after {memory.nbytes} bytes")
        self.memory, self.address = memory, memory.address + offset

    @classmethod
    def of(cls, memory: GpuMemory, values: npt.NDArray[Any], offset: int = 0) -> GpuArray:
        """Return a copy of an array of the host."""
        made = cls(memory, values.size, values.dtype, offset)
        memory.yard.write(made.address, values)
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.n,),
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "stream": self.memory.yard.stream,
            "version": 3,
        }

    def poison(self) -> None:
        """Fill it with what no sum gives, on the stream."""
        self.memory.yard.poison(self.address, self.nbytes)

    def host(self) -> npt.NDArray[Any]:
        """Return a copy, after all that is enqueued."""
        return self.memory.yard.read(self.address, np.empty(self.n, self.dtype))
