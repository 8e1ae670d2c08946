# SPDX-License-Identifier: Apache-2.0
"""Arrays of a GPU that show themselves by DLPack alone, and ours as they are shown to others.

The protocol: https://dmlc.github.io/dlpack/latest/python_spec.html. Who takes an array names the
stream on which it will be used, and the owner makes that stream wait for what it has enqueued.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collectives._ffi import check, ffi, lib
from collectives.arrays import DTYPES, NAMES
from collectives.dlpack_device import device_type
from collectives.errors import InvalidArgumentError
from collectives.gpu_streams import LEGACY
from collectives.plain_calls import dlpack_capsule

if TYPE_CHECKING:
    from collectives.gpu_memory import DeviceArray

_GPU = 2  # kDLCUDA
_MANAGED = 13  # kDLCUDAManaged
_READ_ONLY = 1  # of the flags

# By kind and bits, as DLPack numbers them.
_KINDS = {0: "int", 1: "uint", 2: "float", 5: "complex"}
_NAMED = {(4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}


_LETTERS = {"i": 0, "u": 1, "f": 2, "c": 5}  # of NumPy's dtypes
_NO_WAIT = -1  # of who asks for nothing to be waited for


class Shown(NamedTuple):
    """What a capsule tells; whoever holds ``capsule`` holds the memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements
    dtype: int
    device: int
    read_only: bool
    capsule: Any


class _Tensor(ctypes.Structure):
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
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype, _pointer_in.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


def on_gpu(x: Any, what: str) -> bool:
    """Whether an array says by DLPack that it is on a GPU of CUDA's."""
    return device_type(x, what) in (_GPU, _MANAGED)


def shown(x: Any, stream: int, what: str) -> Shown:
    """Take an array that is on a GPU; ``stream`` then comes after what its owner has enqueued."""
    try:
        capsule = _exported(x, stream)
    except (RuntimeError, BufferError, ValueError) as error:
        raise InvalidArgumentError(f"{what} cannot be read through DLPack: {error}") from error
    # Not renamed as one whose memory is taken over: it goes, and frees, when nobody holds it.
    if _is_valid(capsule, b"dltensor_versioned"):
        whole = _Versioned.from_address(_pointer_in(capsule, b"dltensor_versioned"))
        if whole.major != 1:
            raise InvalidArgumentError(f"{what} is of version {whole.major} of DLPack, 1 is known")
        return _read(whole.tensor, bool(whole.flags & _READ_ONLY), capsule, what)
    if _is_valid(capsule, b"dltensor"):
        tensor = _Tensor.from_address(_pointer_in(capsule, b"dltensor"))
        return _read(tensor, False, capsule, what)
    raise InvalidArgumentError(f"{what} gives something by DLPack that is no tensor")


def _exported(x: Any, stream: int) -> Any:
    try:
        return x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # of an owner that knows the protocol from before version 1
        return x.__dlpack__(stream=stream)


def _read(tensor: _Tensor, read_only: bool, capsule: Any, what: str) -> Shown:
    n = tensor.ndim
    code = _code_of(tensor, what)
    shape = tuple(tensor.shape[:n])
    strides = tuple(tensor.strides[:n]) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    return Shown(address, shape, strides, code, tensor.device_id, read_only, capsule)


def _code_of(tensor: _Tensor, what: str) -> int:
    named = _NAMED.get((tensor.code, tensor.bits))
    if named is None and tensor.code in _KINDS:
        named = f"{_KINDS[tensor.code]}{tensor.bits}"
    if tensor.lanes != 1 or named not in DTYPES:
        raise InvalidArgumentError(
            f"{what} has kind {tensor.code} of DLPack with {tensor.bits} bits in {tensor.lanes} "
            f"lanes: supported are {', '.join(NAMES.values())}"
        )
    return DTYPES[named]


def exported(
    array: DeviceArray, address: int, stream: Any, max_version: Any, dl_device: Any, copy: Any
) -> Any:
    """Return a capsule of an array of ours, as ``__dlpack__``; ``stream`` may use it at once.

    Raises BufferError for what cannot be shown: a copy, another device, a dtype unknown to DLPack.
    """
    if copy:
        raise BufferError("a DeviceArray is shown as it is: it makes no copy")
    if dl_device is not None and tuple(dl_device) != (_GPU, array.device):
        raise BufferError(f"the array is on GPU {array.device}, not on device {dl_device}")
    kind, bits = _kind_and_bits(array.dtype)
    _make_ready(array.device, stream)
    versioned = max_version is not None and max_version[0] >= 1
    return dlpack_capsule(array, address, array.device, kind, bits, array.shape, versioned)


def _make_ready(device: int, stream: Any) -> None:
    """Let a stream come after all that the default one has been given."""
    wanted = LEGACY if stream is None else stream
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < _NO_WAIT or wanted == 0:
        raise BufferError(
            f"stream is {stream!r}: DLPack wants None, 1, 2, a cudaStream_t as a number, or -1"
        )
    if wanted not in (_NO_WAIT, LEGACY):
        follower, followed = ffi.cast("void *", wanted), ffi.cast("void *", LEGACY)
        check(lib.coll_gpu_follow(device, follower, followed))


def _kind_and_bits(dtype: np.dtype[Any]) -> tuple[int, int]:
    for kind_and_bits, name in _NAMED.items():
        if dtype.name == name:
            return kind_and_bits
    if dtype.kind not in _LETTERS or not dtype.isnative:
        raise BufferError(f"DLPack has no {dtype}")
    return _LETTERS[dtype.kind], 8 * dtype.itemsize
