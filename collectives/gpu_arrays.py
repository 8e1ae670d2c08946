# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a GPU, as torch shows its tensors and CuPy and others theirs.

What is needed of one beside its address, its length and dtype: the GPU that it is on, and the
stream on which its owner works with it now.
"""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from collectives import arrays
from collectives._ffi import ffi, lib, text
from collectives.arrays import Array, Operand, operand
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.gpu_streams import LEGACY, given_stream, stream_of
from collectives.names import integer


def anywhere(x: Array, what: str) -> Operand:
    """Resolve an array of the host, or of a GPU; ``what`` opens the sentence of an error."""
    return operand(x, what) if type(x) is np.ndarray else on_gpu(x, what) or operand(x, what)


def output(out: Array, like: Operand, what: str) -> Operand:
    """Resolve an array that is given to be written, in memory of the kind that ``like`` has."""
    target = on_gpu(out, what) or arrays.output(out, what)
    if not _together(target, like):
        raise InvalidArgumentError(
            f"{what} is in memory of {_owner(target)}, but x of {_owner(like)}: pass arrays of one"
        )
    if not target.writable:
        raise InvalidArgumentError(f"{what} is read-only: pass an array that can be written")
    return target


def fresh(like: Operand, shape: tuple[int, ...]) -> Operand:
    """Return a new array of the same framework, dtype and memory, not initialised."""
    if like.device < 0:
        return arrays.fresh(like, shape)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    made = None
    if _is_tensor(torch, like.array):
        assert torch is not None
        made = torch.empty(shape, dtype=like.array.dtype, device=like.array.device)
    elif cupy is not None and isinstance(like.array, cupy.ndarray):
        made = cupy.empty(shape, like.array.dtype)
    else:
        made = _fresh_of_ours(like, shape)
    if made is None:
        raise InvalidArgumentError(
            f"result: a new {type(like.array).__name__} on a GPU cannot be made here: pass out="
        )
    found = on_gpu(made, "result")
    assert found is not None
    return found


def _fresh_of_ours(like: Operand, shape: tuple[int, ...]) -> Array | None:
    from collectives.gpu_memory import DeviceArray

    if not isinstance(like.array, DeviceArray):
        return None
    return DeviceArray(shape, like.array.dtype, like.array.device)


class Place(NamedTuple):
    """Where a call is made: a GPU, -1 for the host, and the stream of its arrays."""

    device: int
    stream: int
    others: tuple[int, ...] = ()  # streams of its arrays beside that


_HOST = Place(-1, 0)


def place_of(call: str, *sides: Operand | None) -> Place:
    """Return where a call of these arrays is made. Arrays of several GPUs are refused."""
    arrays_of = [side for side in sides if side is not None]
    if not arrays_of or all(side.device < 0 for side in arrays_of):
        return _HOST
    # An empty one may not say where it is.
    first = next((side for side in arrays_of if side.elements), arrays_of[0])
    for side in arrays_of:
        if not _together(side, first):
            raise InvalidArgumentError(
                f"{call}: x is in memory of {_owner(arrays_of[0])}, but out of "
                f"{_owner(arrays_of[-1])}: pass arrays of one"
            )
    others = {side.stream for side in arrays_of} - {first.stream}
    return Place(first.device, first.stream, tuple(sorted(others)))


def place_now(call: str, *sides: Operand | None) -> Place:
    """Return the same of arrays that were resolved before, with their streams as they are now."""
    return place_of(
        call,
        *(
            side._replace(stream=stream_of(side.origin)) if side and side.device >= 0 else side
            for side in sides
        ),
    )


def _together(one: Operand, other: Operand) -> bool:
    if one.device < 0 or other.device < 0 or (one.elements and other.elements):
        return one.device == other.device
    return True


def _owner(side: Operand) -> str:
    return "the host" if side.device < 0 else f"GPU {side.device}"


def _is_tensor(torch: ModuleType | None, x: Any) -> bool:
    return torch is not None and isinstance(x, getattr(torch, "Tensor", ()))


def on_gpu(x: Array, what: str) -> Operand | None:
    """Resolve an array of a GPU; None for any other."""
    torch = sys.modules.get("torch")
    if _is_tensor(torch, x):
        assert torch is not None
        return _tensor(torch, x, what) if x.is_cuda else None
    shown = getattr(x, "__cuda_array_interface__", None)
    if shown is not None:
        return _shown(x, shown, what)
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__"):
        return _exported(x, what)
    return None


def _tensor(torch: ModuleType, x: Any, what: str) -> Operand:
    code = arrays.torch_code(torch, x.dtype, what)
    if x.requires_grad and torch.is_grad_enabled():
        raise InvalidArgumentError(f"{what} requires grad: pass x.detach()")
    if not x.is_contiguous() or x.is_neg() or x.is_conj():
        raise InvalidArgumentError(f"{what} is strided memory of a GPU: pass x.contiguous()")
    pointer, shape = ffi.cast("void *", x.data_ptr()), tuple(x.shape)
    device = x.device.index
    return Operand(pointer, x.numel(), code, shape, True, x, x, None, device, stream_of(x))


def _shown(x: Any, shown: dict[str, Any], what: str) -> Operand:
    """Resolve what has the CUDA array interface, version 3 or earlier."""
    dtype, shape = _dtype_of(x, shown), tuple(shown["shape"])
    code = arrays.code_of(dtype, what)
    address, read_only = shown["data"]
    if shown.get("mask") is not None:
        raise InvalidArgumentError(f"{what} has a mask, which would be lost")
    if not _contiguous(shape, shown.get("strides"), dtype.itemsize):
        raise InvalidArgumentError(f"{what} is strided memory of a GPU: pass a contiguous copy")
    pointer, elements = ffi.cast("void *", address), math.prod(shape)
    device = int(lib.coll_gpu_owner(pointer)) if elements else _said(x)
    if device < 0:
        why = ffi.new("char[]", 512)
        lib.coll_gpu_count(why, 512)
        reason = text(why) or "the address is not one of a GPU's memory"
        raise UnsupportedError(f"{what} is an array of a GPU: {reason}")
    stream = stream_of(x)
    return Operand(pointer, elements, code, shape, not read_only, x, x, None, device, stream)


def _said(x: Any) -> int:
    """Return the GPU that an empty array says it is on, as CuPy's do; 0 where it says nothing."""
    device = getattr(x, "device", None)
    number = integer(getattr(device, "id", device))
    return 0 if number is None else number


def _exported(x: Any, what: str) -> Operand | None:
    """Resolve what has DLPack alone; None for memory of the host."""
    from collectives import gpu_dlpack  # it loads ctypes, which no other call needs

    if not gpu_dlpack.on_gpu(x, what):
        return None
    stream = given_stream() or LEGACY
    shown = gpu_dlpack.shown(x, stream, what)
    if not _contiguous(shown.shape, shown.strides, 1):
        raise InvalidArgumentError(f"{what} is strided memory of a GPU: pass a contiguous copy")
    return Operand(
        ffi.cast("void *", shown.address),
        math.prod(shown.shape),
        shown.dtype,
        shown.shape,
        not shown.read_only,
        shown.capsule,
        x,
        None,
        shown.device,
        stream,
    )


def _dtype_of(x: Any, shown: dict[str, Any]) -> np.dtype[Any]:
    """Return the dtype; bfloat16 and float8 have no letters of their own: the array tells."""
    told: Any = getattr(x, "dtype", None)
    known = isinstance(told, np.dtype) and told.str == shown["typestr"]
    found: np.dtype[Any] = told if known else np.dtype(shown["typestr"])
    return found


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int) -> bool:
    """Whether elements follow one another, the last axis fastest."""
    if strides is None or 0 in shape:
        return True
    for n, step in zip(reversed(shape), reversed(strides), strict=True):
        if n > 1 and step != size:
            return False
        size *= n
    return True
