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
from collectives.dlpack_device import device_type
from collectives.errors import InvalidArgumentError, OutOfMemoryError, UnsupportedError
from collectives.plain_calls import meet_dtype
from collectives.repeats import repeats

# A NumPy array, torch tensor, or an object with the buffer protocol or DLPack.
Array: TypeAlias = Any

DTYPES: dict[str, int] = {
    "float32": lib.COLL_FLOAT32,
    "float64": lib.COLL_FLOAT64,
    "int32": lib.COLL_INT32,
    "int64": lib.COLL_INT64,
    "uint8": lib.COLL_UINT8,
    "bfloat16": lib.COLL_BFLOAT16,
    "int8": lib.COLL_INT8,
    "int16": lib.COLL_INT16,
    "uint16": lib.COLL_UINT16,
    "uint32": lib.COLL_UINT32,
    "uint64": lib.COLL_UINT64,
    "bool": lib.COLL_BOOL,
    "float16": lib.COLL_FLOAT16,
    "complex64": lib.COLL_COMPLEX64,
    "complex128": lib.COLL_COMPLEX128,
    "float8_e4m3fn": lib.COLL_FLOAT8_E4M3FN,
    "float8_e5m2": lib.COLL_FLOAT8_E5M2,
    "float32_int32": lib.COLL_FLOAT32_INT32,
    "float64_int64": lib.COLL_FLOAT64_INT64,
    "int32_int32": lib.COLL_INT32_INT32,
    "int64_int64": lib.COLL_INT64_INT64,
}
NAMES = {code: name for name, code in DTYPES.items()}

# Records of a value and its index, whatever the two fields are called: what minloc and maxloc take.
PAIRS: dict[str, Any] = {
    name: np.dtype([("value", name.partition("_")[0]), ("index", name.partition("_")[2])])
    for name in ("float32_int32", "float64_int64", "int32_int32", "int64_int64")
}

# NumPy has these from ml_dtypes, which need not be there: they join when they are first seen. The
# buffer protocol refuses them, so they are shown to it as integers.
_OPAQUE: dict[int, Any] = {
    DTYPES["bfloat16"]: np.uint16,
    DTYPES["float8_e4m3fn"]: np.uint8,
    DTYPES["float8_e5m2"]: np.uint8,
}
SIZES: dict[int, int] = {
    code: np.dtype(_OPAQUE.get(code) or PAIRS.get(name, name)).itemsize
    for name, code in DTYPES.items()
}
_CPU_DEVICES = (1, 3)  # kDLCPU and kDLCUDAHost: memory that the CPU reads
_BYTES = ffi.typeof("char[]")
_POINTER = ffi.typeof("void *")
_from_buffer = ffi.from_buffer
_cast = ffi.cast

_numpy_codes: dict[Any, int] = {
    PAIRS[name] if name in PAIRS else np.dtype(name): code
    for name, code in DTYPES.items()
    if code not in _OPAQUE
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
    device: int = -1  # the GPU that it is on; -1: memory of the host
    stream: int = 0  # of a GPU: where its owner works with it


def borrow(x: Array) -> tuple[Any, int, int] | None:
    """Address, count and dtype of a writable contiguous NumPy array or CPU tensor; else None."""
    if type(x) is np.ndarray:
        code = _numpy_codes.get(x.dtype)
        if code is None:
            return None
        try:
            # The buffer protocol also refuses what is strided or read-only.
            seen = x.view(_OPAQUE[code]) if code in _OPAQUE else x
            return _from_buffer(_BYTES, seen, True), x.size, code
        except (ValueError, BufferError):
            return None
    torch = sys.modules.get("torch")
    if torch is None or type(x) is not getattr(torch, "Tensor", None):
        return None
    code = (_torch_codes or _meet_torch(torch)).get(x.dtype)
    if code is None or not x.is_cpu or x.requires_grad or x.layout is not torch.strided:
        return None
    if x.is_nested or not x.is_contiguous() or x.is_neg() or x.is_conj():
        return None
    address = x.data_ptr()
    return (_cast(_POINTER, address), x.numel(), code) if address else None


def as_integers(x: Array) -> tuple[Any, int] | None:
    """Return an array of ml_dtypes as integers, and its dtype; None for anything else."""
    code = _numpy_codes.get(x.dtype, -1) if type(x) is np.ndarray else -1
    return (x.view(_OPAQUE[code]), code) if code in _OPAQUE else None


def as_array(x: Array) -> Any:
    """Return the NumPy array on the memory of a plain CPU tensor; None for anything else."""
    torch = sys.modules.get("torch")
    if torch is None or type(x) is not getattr(torch, "Tensor", None):
        return None
    if (_torch_codes or _meet_torch(torch)).get(x.dtype, -1) in _OPAQUE:
        return None
    try:
        return x.numpy() if x.data_ptr() else None
    except (RuntimeError, TypeError):  # on a device, part of a gradient, conjugate, ...
        return None


def operand(x: Array, what: str) -> Operand:
    """Resolve any supported array; ``what`` opens the sentence of an error ("allreduce: x")."""
    if type(x) is np.ndarray:
        array, writable = x, x.flags.writeable
    else:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(x, getattr(torch, "Tensor", ())):
            return _tensor_operand(torch, x, what)
        array, writable = _as_numpy(x, what)
    code = code_of(array.dtype, what)
    packed = None
    if not array.flags.c_contiguous:
        packed, array = array, _in_one_piece(array, what)
    seen = array.view(_OPAQUE[code]) if code in _OPAQUE else array
    pointer = _from_buffer(_BYTES, seen, False)
    return Operand(pointer, array.size, code, array.shape, writable, array, x, packed)


def output(out: Array, what: str) -> Operand:
    """Resolve an array that is given to be written: it must be writable.

    A strided one is packed, and written back by :func:`delivered`.
    """
    target = operand(out, what)
    if not target.writable:
        raise InvalidArgumentError(f"{what} is read-only: pass an array that can be written")
    refuse_repeats(target, what)
    return target


def refuse_repeats(target: Operand, what: str) -> None:
    """Refuse to write an array of which two elements share memory: one result would be lost."""
    if target.writable and target.packed is not None and _repeats(target.packed):
        raise InvalidArgumentError(
            f"{what} of shape {target.shape} has elements that share their memory: pass a copy"
        )


def _repeats(array: Any) -> bool:
    if isinstance(array, np.ndarray):
        return repeats(array.shape, array.strides, array.itemsize)
    size = array.element_size()
    return repeats(array.shape, [step * size for step in array.stride()], size)


def _in_one_piece(array: Any, what: str) -> Any:
    try:
        return np.ascontiguousarray(array)
    except MemoryError as error:
        raise OutOfMemoryError(
            f"{what} is strided: there is no memory for a copy of its {array.nbytes} bytes"
        ) from error


def fresh(like: Operand, shape: tuple[int, ...]) -> Operand:
    """Return a new array of the same framework and dtype, not initialised."""
    if isinstance(like.array, np.ndarray):
        dtype = like.array.dtype
        try:
            return operand(np.empty(shape, dtype), "result")
        except MemoryError as error:
            raise OutOfMemoryError(f"there is no memory for a result {shape} of {dtype}") from error
    torch = sys.modules["torch"]
    return operand(torch.empty(shape, dtype=like.array.dtype), "result")


def repack(side: Operand) -> None:
    """Copy a strided array once more, as it is now."""
    if isinstance(side.packed, np.ndarray):
        side.array[...] = side.packed
    elif side.packed is not None:
        side.array.copy_(side.packed)


def itemsize(array: Operand) -> int:
    """Bytes of an element."""
    return SIZES[array.dtype]


def delivered(target: Operand) -> Array:
    """Write a packed result back to its strided array; return what belongs to the caller."""
    if target.packed is not None:
        if isinstance(target.packed, np.ndarray):
            target.packed[...] = target.array
        else:
            target.packed.copy_(target.array)
    elif not isinstance(target.array, np.ndarray):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(target.array, getattr(torch, "Tensor", ())):
            written(target.array)
    return target.origin


def written(tensor: Any) -> None:
    """Tell autograd that a tensor was written behind its back.

    Without it a backward pass that saved the old values would go on, silently wrong.
    """
    if not tensor.is_inference():
        sys.modules["torch"].autograd.graph.increment_version(tensor)


def _meet_torch(torch: ModuleType) -> dict[Any, int]:
    # Not all versions have all. At one stroke: another thread must not see some of them only.
    known = {getattr(torch, name, None): code for name, code in DTYPES.items()}
    known.pop(None, None)
    _torch_codes.update(known)
    return _torch_codes


def numpy_dtype(code: int) -> np.dtype[Any]:
    """Return the NumPy dtype of a dtype's number; pairs have the fields ``value`` and ``index``."""
    name = NAMES[code]
    found: Any = PAIRS.get(name, name)
    if code in _OPAQUE:
        try:
            import ml_dtypes
        except ImportError:
            raise InvalidArgumentError(
                f"NumPy has {name} from the package ml_dtypes: pip install ml_dtypes"
            ) from None
        found = getattr(ml_dtypes, name)
    made: np.dtype[Any] = np.dtype(found)
    return made


def dtype_code(dtype: np.dtype[Any]) -> int:
    """Return the number of a dtype that the buffer protocol knows; else raise KeyError."""
    return _numpy_codes[dtype]


def code_of(dtype: np.dtype[Any], what: str) -> int:
    """Return the number of a dtype that is supported."""
    code = _numpy_code(dtype)
    if code is None:
        raise InvalidArgumentError(_wrong_dtype(what, dtype))
    return code


def torch_code(torch: ModuleType, dtype: Any, what: str) -> int:
    """Return the number of a dtype of torch's that is supported."""
    code = (_torch_codes or _meet_torch(torch)).get(dtype)
    if code is None:
        raise InvalidArgumentError(_wrong_dtype(what, dtype))
    return code


def _numpy_code(dtype: Any) -> int | None:
    code = _numpy_codes.get(dtype)
    if code is None:
        code = _pair_code(dtype) if dtype.names else _opaque_code(dtype)
        if code is not None:
            _numpy_codes[dtype] = code
            meet_dtype(dtype.num, code)
    return code


def _opaque_code(dtype: Any) -> int | None:
    code = DTYPES.get(dtype.name, -1)
    known = code in _OPAQUE and dtype.itemsize == np.dtype(_OPAQUE[code]).itemsize
    return code if known else None


def _pair_code(dtype: Any) -> int | None:
    """Return the number of the pair with this layout, under whatever names."""
    fields = [dtype.fields[name][:2] for name in dtype.names]
    for name, pair in PAIRS.items():
        wanted = [pair.fields[field][:2] for field in pair.names]
        if fields == wanted and dtype.itemsize == pair.itemsize:
            return DTYPES[name]
    return None


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
    if hasattr(x, "__cuda_array_interface__"):
        raise UnsupportedError(
            f"{what} is in memory of a GPU, which this call does not take yet: pass a copy in "
            "memory of the host"
        )
    if hasattr(x, "__dlpack__"):
        return _from_dlpack(x, what)
    try:
        array = np.asarray(memoryview(x))
    except (TypeError, ValueError, NotImplementedError) as error:
        for way in ("dense", "toarray"):  # of ours, and of SciPy's
            if hasattr(x, way):
                raise InvalidArgumentError(
                    f"{what} is a {type(x).__name__}: pass x.{way}()"
                ) from error
        raise InvalidArgumentError(
            f"{what} is of type {type(x).__name__}: pass a NumPy array, a torch tensor, or an "
            "object with DLPack or the buffer protocol"
        ) from error
    return array, array.flags.writeable


def _from_dlpack(x: Array, what: str) -> tuple[Any, bool]:
    device = device_type(x, what)
    if device not in _CPU_DEVICES:
        raise UnsupportedError(
            f"{what} is not in CPU memory (DLPack device type {device}): "
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
    if x.is_nested:
        raise InvalidArgumentError(f"{what} is a nested tensor: pass the tensors of x.unbind()")
    code = torch_code(torch, x.dtype, what)
    if x.requires_grad and torch.is_grad_enabled():
        raise InvalidArgumentError(
            f"{what} requires grad, and collectives are not differentiable: "
            "pass x.detach(), or call it under torch.no_grad()"
        )
    tensor, packed = x, None
    if x.numel() and not x.data_ptr():  # a fake one, a functional one, or one whose memory is freed
        raise InvalidArgumentError(f"{what} is a {type(x).__name__} without memory of its own")
    if x.is_neg() or x.is_conj() or not x.is_contiguous():
        packed, tensor = x, x.resolve_conj().resolve_neg().contiguous()
    pointer = _cast(_POINTER, tensor.data_ptr())
    return Operand(pointer, tensor.numel(), code, tuple(x.shape), True, tensor, x, packed)


def _wrong_dtype(what: str, dtype: object) -> str:
    if (
        isinstance(dtype, np.dtype)
        and not dtype.isnative
        and _numpy_code(dtype.newbyteorder("=")) is not None
    ):
        return (
            f"{what} has dtype {dtype}, whose bytes are in another order than this machine's: "
            "pass x.astype(x.dtype.newbyteorder('='))"
        )
    return f"{what} has dtype {dtype}: supported are {', '.join(DTYPES)}"
