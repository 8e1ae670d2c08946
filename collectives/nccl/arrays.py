# SPDX-License-Identifier: Apache-2.0
"""From arrays to what NCCL takes: an address, a number of elements and a dtype's number.

Arrays of CuPy and torch, what has ``__cuda_array_interface__`` or DLPack, and, for a library that
takes memory of the host, what the rest of the package takes there. They must lie in one piece: NCCL
reads them later, so there is no moment at which a packed copy could be written back.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from collectives import arrays
from collectives._ffi import ffi
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.gpu_streams import LEGACY, given_stream, stream_of
from collectives.nccl.constants import DTYPES

# An array of CuPy, torch or NumPy, or what has DLPack or __cuda_array_interface__.
Array: TypeAlias = Any

HOST = -1

# NCCL's dtypes, by the names that NumPy, ml_dtypes and torch have for them.
CODES: dict[str, int] = {
    "int8": DTYPES["ncclInt8"],
    "uint8": DTYPES["ncclUint8"],
    "int32": DTYPES["ncclInt32"],
    "uint32": DTYPES["ncclUint32"],
    "int64": DTYPES["ncclInt64"],
    "uint64": DTYPES["ncclUint64"],
    "float16": DTYPES["ncclFloat16"],
    "float32": DTYPES["ncclFloat32"],
    "float64": DTYPES["ncclFloat64"],
    "bfloat16": DTYPES["ncclBfloat16"],
    "float8_e4m3fn": DTYPES["ncclFloat8e4m3"],
    "float8_e5m2": DTYPES["ncclFloat8e5m2"],
}
_BYTES = CODES["uint8"]


class Operand(NamedTuple):
    """One array as NCCL sees it.

    A dtype that NCCL does not have is moved as bytes: then ``code`` is that of uint8, ``unit`` says
    how many of them an element has, and reductions refuse it.
    """

    address: int
    elements: int
    dtype: str
    code: int
    unit: int  # of NCCL's elements, in one of the array's
    size: int  # bytes of one of the array's
    device: int  # of a GPU; HOST
    stream: int  # on which its owner works with it; of the host 0
    writable: bool
    array: Any  # keeps the memory
    origin: Any  # what the caller passed, and gets back

    @property
    def length(self) -> int:
        """The number of elements as NCCL counts them."""
        return self.elements * self.unit

    @property
    def end(self) -> int:
        """The address behind the last element."""
        return self.address + self.elements * self.size


def operand(x: Array, what: str, takes_host: bool) -> Operand:
    """Resolve an array; ``what`` opens the sentence of an error ("allreduce: x")."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(x, getattr(torch, "Tensor", ())):
        found = _tensor(torch, x, what)
    elif hasattr(x, "__cuda_array_interface__"):
        found = _shown(x, what)
    elif not hasattr(x, "__array_interface__") and _exports_gpu(x):
        found = _exported(x, what)
    else:
        found = _of_host(x, what)
    if found.device == HOST and not takes_host:
        raise UnsupportedError(
            f"{what} is in memory of the host, and this libnccl takes arrays of a GPU: pass one of "
            "CuPy or torch, or load the libnccl of pycollectives"
        )
    return found


def refuse_read_only(found: Operand, what: str) -> Operand:
    """Return an operand that is to be written."""
    if not found.writable:
        raise InvalidArgumentError(f"{what} is read-only: pass an array that can be written")
    return found


def _made(
    address: int,
    elements: int,
    dtype: str,
    size: int,
    device: int,
    stream: int,
    writable: bool,
    array: Any,
    origin: Any,
) -> Operand:
    code = CODES.get(dtype)
    unit = 1 if code is not None else size
    return Operand(
        address,
        elements,
        dtype,
        _BYTES if code is None else code,
        unit,
        size,
        device,
        stream,
        writable,
        array,
        origin,
    )


def _tensor(torch: Any, x: Any, what: str) -> Operand:
    if x.layout is not torch.strided:
        raise InvalidArgumentError(f"{what} is a {x.layout} tensor: pass x.to_dense()")
    if not x.is_contiguous() or x.is_neg() or x.is_conj():
        raise InvalidArgumentError(f"{what} does not lie in one piece: pass x.contiguous()")
    if x.requires_grad and torch.is_grad_enabled():
        raise InvalidArgumentError(f"{what} requires grad: pass x.detach()")
    if not x.is_cuda and not x.is_cpu:
        raise UnsupportedError(f"{what} is a tensor on {x.device}: pass one of a CUDA GPU")
    device, stream = (x.device.index, stream_of(x)) if x.is_cuda else (HOST, 0)
    dtype = str(x.dtype).removeprefix("torch.")
    size = x.element_size()
    return _made(x.data_ptr(), x.numel(), dtype, size, device, stream, True, x, x)


def _shown(x: Any, what: str) -> Operand:
    """Resolve what has the CUDA array interface, version 3 or earlier."""
    shown = x.__cuda_array_interface__
    told: Any = getattr(x, "dtype", None)
    # bfloat16 and float8 have no letters of their own: the array tells.
    known = isinstance(told, np.dtype) and told.str == shown["typestr"]
    dtype = told if known else np.dtype(shown["typestr"])
    if shown.get("mask") is not None:
        raise InvalidArgumentError(f"{what} has a mask, which would be lost")
    shape = tuple(shown["shape"])
    _refuse_strides(shape, shown.get("strides"), dtype.itemsize, what)
    address, read_only = shown["data"]
    device = getattr(x, "device", None)
    number = getattr(device, "id", device)
    return _made(
        address,
        math.prod(shape),
        _name(dtype, what),
        dtype.itemsize,
        number if isinstance(number, int) else 0,
        stream_of(x),
        not read_only,
        x,
        x,
    )


def _exports_gpu(x: Any) -> bool:
    if not hasattr(x, "__dlpack_device__"):
        return False
    from collectives import gpu_dlpack  # it loads ctypes, which no other call needs

    return gpu_dlpack.on_gpu(x, "x")


def _exported(x: Any, what: str) -> Operand:
    """Resolve what has DLPack alone: its owner makes it ready for the stream of the call."""
    from collectives import gpu_dlpack

    stream = given_stream() or LEGACY
    shown = gpu_dlpack.shown(x, stream, what)
    dtype = arrays.NAMES[shown.dtype]
    size = arrays.SIZES[shown.dtype]
    # DLPack counts strides in elements.
    _refuse_strides(shown.shape, shown.strides, 1, what)
    return _made(
        shown.address,
        math.prod(shown.shape),
        dtype,
        size,
        shown.device,
        stream,
        not shown.read_only,
        shown.capsule,
        x,
    )


def _of_host(x: Any, what: str) -> Operand:
    found = arrays.operand(x, what)
    if found.packed is not None:
        raise InvalidArgumentError(f"{what} does not lie in one piece: pass a contiguous copy")
    address = int(ffi.cast("uintptr_t", found.pointer))
    size = arrays.itemsize(found)
    dtype = arrays.NAMES[found.dtype]
    return _made(address, found.elements, dtype, size, HOST, 0, found.writable, found.array, x)


def _name(dtype: np.dtype[Any], what: str) -> str:
    if dtype.hasobject or not dtype.isnative:
        raise InvalidArgumentError(f"{what} has dtype {dtype}, which NCCL cannot move")
    return dtype.name


def _refuse_strides(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int, what: str
) -> None:
    """Refuse an array whose elements do not follow one another, the last axis fastest."""
    if strides is None or 0 in shape:
        return
    for n, step in zip(reversed(shape), reversed(strides), strict=True):
        if n > 1 and step != size:
            raise InvalidArgumentError(f"{what} does not lie in one piece: pass a contiguous copy")
        size *= n
