# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory that all ranks reach: peers read and write them without a copy on the way."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from collectives import arrays
from collectives._ffi import check, ffi, lib
from collectives.arrays import Array, itemsize, numpy_dtype
from collectives.caller import Caller
from collectives.errors import InvalidArgumentError, OutOfMemoryError
from collectives.gpu_arrays import anywhere
from collectives.names import integer


class Symmetric(Caller):
    """How a communicator makes arrays that its ranks share, and knows them."""

    def empty(
        self, shape: int | Sequence[int], dtype: Any = np.float32, *, device: Any = None
    ) -> Array:
        """Return a new array, not initialised, in memory that all ranks of the job reach.

        ``dtype`` is a NumPy dtype, or its name, and the array NumPy's; or a torch dtype, and the
        array a tensor. Local: every rank makes its own, of whatever shape and whenever it likes,
        and the collectives take it beside ordinary arrays; where it is large they are several
        times as fast on it. It may outlive the communicator and serve others that came from one
        ``init()`` with it. What arrays leave stays with this process for later ones. A forked
        child has the same memory, no copy of it. Between machines it is ordinary memory.

        ``device="cuda"`` (the current GPU of CuPy or torch, else the first), ``"cuda:1"`` or a
        number: memory of a GPU, all zero. The array is CuPy's where that is loaded, a tensor of a
        torch dtype, else a :class:`DeviceArray`, whose memory goes with its last view.

        Raises InvalidArgumentError for a dtype of objects, or a quantised one of torch;
        OutOfMemoryError where the machine, or its control group, has no
        memory left, or the array is longer than a machine's (rounded up to a power of two);
        UnsupportedError where there is no such GPU; SystemCallError where that is
        full.
        """
        sizes = _shape(shape)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(dtype, torch.dtype):
            _refuse_quantised(dtype)
        if device is not None:
            from collectives import gpu_memory  # where there is a GPU

            if (number := gpu_memory.number_of(device)) >= 0:
                with self._handle.held("empty"):
                    if torch is not None and isinstance(dtype, torch.dtype):
                        _check_size(sizes, torch.empty((), dtype=dtype).element_size())
                        return gpu_memory.empty_tensor(torch, sizes, dtype, number)
                    kind = _numpy_dtype(dtype)
                    _check_size(sizes, kind.itemsize)
                    return gpu_memory.empty(sizes, kind, number)
        if torch is not None and isinstance(dtype, torch.dtype):
            count, size = math.prod(sizes), torch.empty((), dtype=dtype).element_size()
            _check_size(sizes, size)
            block = self._block(count * size)
            flat = torch.frombuffer(block, dtype=dtype, count=count) if count else None
            return torch.empty(sizes, dtype=dtype) if flat is None else flat.view(sizes)
        kind = _numpy_dtype(dtype)
        _check_size(sizes, kind.itemsize)
        block = self._block(math.prod(sizes) * kind.itemsize)
        return np.ndarray(sizes, kind, block)

    def is_symmetric(self, x: Array) -> bool:
        """Whether all of ``x`` lies in memory that all ranks reach. Threads reach all memory.

        That of a GPU is reached by the ranks of a process alone.
        """
        given = anywhere(x, "is_symmetric: x")
        if given.packed is not None:
            return False
        size = itemsize(given)

        with self._handle.held("is_symmetric") as native:
            return bool(lib.coll_is_symmetric(native, given.pointer, given.elements * size))

    def _block(self, size: int) -> Any:
        """Return a buffer of at least so many bytes, which goes when nobody holds it."""
        place, data = ffi.new("coll_memory **"), ffi.new("void **")

        with self._handle.held("empty") as native:
            check(lib.coll_memory_new(native, max(size, 1), place, data))
        owner = np.frombuffer(ffi.buffer(data[0], max(size, 1)), np.uint8)
        weakref.finalize(owner, lib.coll_memory_free, place[0]).atexit = False
        return owner


def _shape(shape: Any) -> tuple[int, ...]:
    number = integer(shape)
    sizes = [number] if number is not None else [integer(n) for n in _listed(shape)]
    if any(n is None or n < 0 for n in sizes):
        raise InvalidArgumentError(f"empty: shape is {shape!r}: give numbers of at least 0")
    return tuple(n for n in sizes if n is not None)


def _check_size(sizes: tuple[int, ...], itemsize: int) -> None:
    # As NumPy counts: a length of 0 makes no other one shorter.
    if math.prod(max(n, 1) for n in sizes) * itemsize > sys.maxsize:
        raise OutOfMemoryError(f"empty: shape is {sizes}: no machine has so much memory")


def _listed(shape: Any) -> list[Any]:
    try:
        return list(shape)
    except TypeError:
        return [None]


def _refuse_quantised(dtype: Any) -> None:
    if str(dtype).startswith("torch.q"):
        raise InvalidArgumentError(
            f"empty: dtype {dtype}: tensors of it have a scale of their own besides their bytes"
        )


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    if isinstance(dtype, str) and dtype in arrays.DTYPES:
        return numpy_dtype(arrays.DTYPES[dtype])
    try:
        made: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise InvalidArgumentError(f"empty: dtype is {dtype!r}: {error}") from error
    if made.hasobject:
        raise InvalidArgumentError(f"empty: dtype {made} holds objects of this process alone")
    return made
