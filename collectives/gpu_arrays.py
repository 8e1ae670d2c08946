# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a GPU, as torch shows its tensors and CuPy and others theirs.

What is needed of one beside its address, its length and dtype: the GPU that it is on, and the
stream on which its owner works with it now.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from collectives import arrays
from collectives._ffi import ffi, lib, text
from collectives.arrays import Array, Operand, operand
from collectives.errors import InvalidArgumentError, UnsupportedError


def anywhere(x: Array, what: str) -> Operand:
    """Resolve an array of the host, or of a GPU; ``what`` opens the sentence of an error."""
    return operand(x, what) if type(x) is np.ndarray else _on_gpu(x, what) or operand(x, what)


def output(out: Array, like: Operand, what: str) -> Operand:
    """Resolve an array that is given to be written, in memory of the kind that ``like`` has."""
    target = _on_gpu(out, what) or arrays.output(out, what)
    if target.device != like.device:
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
    if made is None:
        raise InvalidArgumentError(
            f"result: a new {type(like.array).__name__} on a GPU cannot be made here: pass out="
        )
    found = _on_gpu(made, "result")
    assert found is not None
    return found


def place_of(call: str, source: Operand | None, target: Operand | None) -> tuple[int, int]:
    """Return the GPU of a call's arrays, -1 for the host, and the stream."""
    sides = [side for side in (source, target) if side is not None]
    if not sides:
        return -1, 0
    if any(side.device != sides[0].device for side in sides):
        raise InvalidArgumentError(
            f"{call}: x is in memory of {_owner(sides[0])}, but out of {_owner(sides[1])}: pass "
            "arrays of one"
        )
    return sides[0].device, sides[0].stream


def _owner(side: Operand) -> str:
    return "the host" if side.device < 0 else f"GPU {side.device}"


def _is_tensor(torch: ModuleType | None, x: Any) -> bool:
    return torch is not None and isinstance(x, getattr(torch, "Tensor", ()))


def _on_gpu(x: Array, what: str) -> Operand | None:
    torch = sys.modules.get("torch")
    if _is_tensor(torch, x):
        assert torch is not None
        return _tensor(torch, x, what) if x.is_cuda else None
    shown = getattr(x, "__cuda_array_interface__", None)
    return None if shown is None else _shown(x, shown, what)


def _tensor(torch: ModuleType, x: Any, what: str) -> Operand:
    code = arrays.torch_code(torch, x.dtype, what)
    if x.requires_grad and torch.is_grad_enabled():
        raise InvalidArgumentError(f"{what} requires grad: pass x.detach()")
    if not x.is_contiguous() or x.is_neg() or x.is_conj():
        raise InvalidArgumentError(f"{what} is strided memory of a GPU: pass x.contiguous()")
    pointer = ffi.cast("void *", x.data_ptr())
    stream = int(torch.cuda.current_stream(x.device).cuda_stream)
    shape = tuple(x.shape)
    return Operand(pointer, x.numel(), code, shape, True, x, x, None, x.device.index, stream)


def _shown(x: Any, shown: dict[str, Any], what: str) -> Operand:
    """Resolve what has the CUDA array interface, version 3 or earlier."""
    dtype, shape = np.dtype(shown["typestr"]), tuple(shown["shape"])
    code = arrays.code_of(dtype, what)
    address, read_only = shown["data"]
    if shown.get("mask") is not None:
        raise InvalidArgumentError(f"{what} has a mask, which would be lost")
    if not _contiguous(shape, shown.get("strides"), dtype.itemsize):
        raise InvalidArgumentError(f"{what} is strided memory of a GPU: pass a contiguous copy")
    pointer, elements = ffi.cast("void *", address), int(np.prod(shape, dtype=np.int64))
    device = int(lib.coll_gpu_owner(pointer)) if elements else 0
    if device < 0:
        why = ffi.new("char[]", 512)
        lib.coll_gpu_count(why, 512)
        reason = text(why) or "the address is not one of a GPU's memory"
        raise UnsupportedError(f"{what} is an array of a GPU: {reason}")
    stream = int(shown.get("stream") or 0)
    return Operand(pointer, elements, code, shape, not read_only, x, x, None, device, stream)


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int) -> bool:
    """Whether elements follow one another, the last axis fastest."""
    if strides is None or 0 in shape:
        return True
    for n, step in zip(reversed(shape), reversed(strides), strict=True):
        if n > 1 and step != size:
            return False
        size *= n
    return True
