# SPDX-License-Identifier: Apache-2.0
"""From arrays to what the native layer takes: an address, a number of elements and a dtype.

Getting the address costs more than a small collective, so NumPy arrays and torch tensors have a
short way, :func:`borrow`; whatever it does not take goes through :func:`operand`, which knows

* NumPy arrays of any stride (packed into a contiguous copy, and written back),
* torch tensors in CPU memory (torch is never imported here: who passes a tensor has done it),
* objects with DLPack in CPU memory, and objects with the buffer protocol.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from collectives._ffi import ffi, lib
from collectives.errors import InvalidArgumentError, UnsupportedError

# A NumPy array, torch tensor, or an object with the buffer protocol or DLPack.
Array: TypeAlias = Any

DTYPES: dict[str, int] = {
    "float32": lib.COLL_FLOAT32,
    "float64": lib.COLL_FLOAT64,
    "int32": lib.COLL_INT32,
    "int64": lib.COLL_INT64,
    "uint8": lib.COLL_UINT8,
    "bfloat16": lib.COLL_BFLOAT16,
}
NAMES = {code: name for name, code in DTYPES.items()}

_BFLOAT16 = DTYPES["bfloat16"]
_CPU_DEVICES = (1, 3)  # kDLCPU and kDLCUDAHost: memory that the CPU reads
_BYTES = ffi.typeof("char[]")
_POINTER = ffi.typeof("void *")
_from_buffer = ffi.from_buffer
_cast = ffi.cast

# bfloat16 joins when it is first seen: NumPy has it from ml_dtypes, which need not be there.
_numpy_codes: dict[Any, int] = {
    np.dtype(name): code for name, code in DTYPES.items() if name != "bfloat16"
}
_torch_codes: dict[Any, int] = {}


class Operand(NamedTuple):
    """One array as the native layer sees it."""

    pointer: Any
    elements: int
    dtype: int
    shape: tuple[int, ...]
    writable: bool
    array: Any  # contiguous; owns the memory behind `pointer`
    origin: Any  # what the caller passed, and gets back
    packed: Any  # the strided array that `array` is a copy of, or None


def borrow(x: Array) -> tuple[Any, int, int] | None:
    """Address, count and dtype of a writable contiguous NumPy array or CPU tensor; else None."""
    if type(x) is np.ndarray:
        code = _numpy_codes.get(x.dtype)
        if code is None:
            return None
        try:
            # The buffer protocol refuses ml_dtypes; it also refuses what is strided or read-only.
            seen = x.view(np.uint16) if code == _BFLOAT16 else x
            return _from_buffer(_BYTES, seen, True), x.size, code
        except (ValueError, BufferError):
            return None
    torch = sys.modules.get("torch")
    if torch is None or type(x) is not getattr(torch, "Tensor", None):
        return None
    code = (_torch_codes or _meet_torch(torch)).get(x.dtype)
    if code is None or not x.is_cpu or x.requires_grad or x.layout is not torch.strided:
        return None
    if not x.is_contiguous() or x.is_neg():
        return None
    return _cast(_POINTER, x.data_ptr()), x.numel(), code


def operand(x: Array, what: str) -> Operand:
    """Resolve any supported array; ``what`` opens the sentence of an error ("allreduce: x")."""
    if type(x) is np.ndarray:
        array, writable = x, x.flags.writeable
    else:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(x, getattr(torch, "Tensor", ())):
            return _tensor_operand(torch, x, what)
        array, writable = _as_numpy(x, what)
    code = _numpy_code(array.dtype)
    if code is None:
        raise InvalidArgumentError(_wrong_dtype(what, array.dtype))
    packed = None
    if not array.flags.c_contiguous:
        packed, array = array, np.ascontiguousarray(array)
    seen = array.view(np.uint16) if code == _BFLOAT16 else array
    pointer = _from_buffer(_BYTES, seen, False)
    return Operand(pointer, array.size, code, array.shape, writable, array, x, packed)


def output(out: Array, what: str) -> Operand:
    """Resolve an array that is given to be written: it must be writable and contiguous."""
    target = operand(out, what)
    if not target.writable:
        raise InvalidArgumentError(f"{what} is read-only: pass an array that can be written")
    if target.packed is not None:
        raise InvalidArgumentError(
            f"{what} is not contiguous (shape {target.shape}): pass a contiguous array and copy"
        )
    return target


def fresh(like: Operand, shape: tuple[int, ...]) -> Operand:
    """Return a new array of the same framework and dtype, not initialised."""
    if isinstance(like.array, np.ndarray):
        return operand(np.empty(shape, like.array.dtype), "result")
    torch = sys.modules["torch"]
    return operand(torch.empty(shape, dtype=like.array.dtype), "result")


def delivered(target: Operand) -> Array:
    """Write a packed result back to its strided array; return what belongs to the caller."""
    if target.packed is not None:
        if isinstance(target.packed, np.ndarray):
            target.packed[...] = target.array
        else:
            target.packed.copy_(target.array)
    elif not isinstance(target.array, np.ndarray):
        written(target.array)
    return target.origin


def written(tensor: Any) -> None:
    """Tell autograd that a tensor was written behind its back.

    Without it a backward pass that saved the old values would go on, silently wrong.
    """
    if not tensor.is_inference():
        sys.modules["torch"].autograd.graph.increment_version(tensor)


def _meet_torch(torch: ModuleType) -> dict[Any, int]:
    # At one stroke: another thread must not see some of the dtypes only.
    _torch_codes.update({getattr(torch, name): code for name, code in DTYPES.items()})
    return _torch_codes


def _numpy_code(dtype: Any) -> int | None:
    code = _numpy_codes.get(dtype)
    if code is None and dtype.name == "bfloat16" and dtype.itemsize == 2:
        code = _numpy_codes[dtype] = _BFLOAT16
    return code


def _as_numpy(x: Array, what: str) -> tuple[Any, bool]:
    """Return a NumPy array on the memory of ``x``, and whether it may be written."""
    if isinstance(x, np.ma.MaskedArray):
        raise InvalidArgumentError(
            f"{what} is a masked array, whose mask would be lost: pass x.filled(...)"
        )
    if isinstance(x, np.ndarray):
        array = np.asarray(x)
        return array, array.flags.writeable
    if isinstance(x, np.generic):
        return np.asarray(x), False
    if hasattr(x, "__dlpack__"):
        return _from_dlpack(x, what)
    try:
        array = np.asarray(memoryview(x))
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InvalidArgumentError(
            f"{what} is of type {type(x).__name__}: pass a NumPy array, a torch tensor, or an "
            "object with DLPack or the buffer protocol"
        ) from error
    return array, array.flags.writeable


def _from_dlpack(x: Array, what: str) -> tuple[Any, bool]:
    device = x.__dlpack_device__()[0]
    if device not in _CPU_DEVICES:
        raise UnsupportedError(
            f"{what} is not in CPU memory (DLPack device type {int(device)}): "
            "this build serves CPU memory only; copy it to the CPU first"
        )
    try:
        array = np.from_dlpack(x)
    except (RuntimeError, BufferError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{what} cannot be read through DLPack: {error}") from error
    # JAX promises its users that arrays never change, and does not say so in what it exports.
    immutable = type(x).__module__.partition(".")[0] in ("jax", "jaxlib")
    return array, array.flags.writeable and not immutable


def _tensor_operand(torch: ModuleType, x: Any, what: str) -> Operand:
    if not x.is_cpu:
        raise UnsupportedError(
            f"{what} is a tensor on {x.device}: this build serves CPU memory only; pass x.cpu()"
        )
    if x.layout is not torch.strided:
        raise InvalidArgumentError(f"{what} is a {x.layout} tensor: pass x.to_dense()")
    code = (_torch_codes or _meet_torch(torch)).get(x.dtype)
    if code is None:
        raise InvalidArgumentError(_wrong_dtype(what, x.dtype))
    if x.requires_grad and torch.is_grad_enabled():
        raise InvalidArgumentError(
            f"{what} requires grad, and collectives are not differentiable: "
            "pass x.detach(), or call it under torch.no_grad()"
        )
    tensor, packed = x, None
    if x.is_neg() or not x.is_contiguous():
        packed, tensor = x, x.resolve_neg().contiguous()
    address = tensor.data_ptr()
    if address == 0 and tensor.numel():
        raise InvalidArgumentError(f"{what} is a {type(x).__name__} without memory of its own")
    pointer = _cast(_POINTER, address)
    return Operand(pointer, tensor.numel(), code, tuple(x.shape), True, tensor, x, packed)


def _wrong_dtype(what: str, dtype: object) -> str:
    return f"{what} has dtype {dtype}: supported are {', '.join(DTYPES)}"


def numpy_dtype(code: int) -> Any:
    """Return the NumPy dtype of a number of the native layer."""
    for dtype, known in _numpy_codes.items():
        if known == code:
            return dtype
    import ml_dtypes  # an array of it was seen elsewhere: in torch

    return np.dtype(getattr(ml_dtypes, NAMES[code]))
