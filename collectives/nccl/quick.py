# SPDX-License-Identifier: Apache-2.0
"""The short way of calls on arrays that need no questions.

To look at an array in every way costs several times what NCCL takes to enqueue a call. Here the
usual ones are looked at as shortly as can be: NumPy's (an allreduce of them in C,
native/bindings/plain_nccl.c), CuPy's, and torch's on a GPU, contiguous, writable, of a dtype that
NCCL has. What is not so is not judged: then nothing was done, and the long way serves the call, or
says what is wrong.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol, TypeAlias

import numpy as np

from collectives import arrays
from collectives._ffi import ffi
from collectives.gpu_streams import LEGACY, given_stream
from collectives.nccl import groups
from collectives.nccl.arrays import CODES, HOST
from collectives.nccl.constants import SUCCESS
from collectives.nccl.library import Library
from collectives.nccl.operations import NAMES
from collectives.plain_calls import run_nccl_allreduce

# Address, elements, dtype, device, stream.
Plain: TypeAlias = tuple[int, int, int, int, int]

_MISSED = -1  # of C: nothing was done
_WORD = ffi.typeof("uintptr_t")
_cast, _borrow = ffi.cast, arrays.borrow
# By the package's own numbers.
_CODES = {arrays.DTYPES[name]: code for name, code in CODES.items()}
_SIZES = {code: arrays.SIZES[ours] for ours, code in _CODES.items()}
_NUMPY = {np.dtype(name): code for name, code in CODES.items() if hasattr(np, name)}
_torch_codes: dict[Any, int] = {}


class Rank(Protocol):
    """What is asked of a communicator."""

    library: Library
    busy: bool

    @property
    def handle(self) -> int:
        """The communicator, as NCCL knows it."""

    @property
    def device(self) -> int:
        """The GPU of this rank."""

    def settle(self, function: str, code: int) -> None:
        """Deal with a result that is not success."""


def allreduce(comm: Rank, x: Any, out: Any, op: Any) -> bool:
    """Make the call if it is a plain one; return whether it was made."""
    code = NAMES.get(op) if type(op) is str else None
    if code is None or comm.busy or groups.OPEN:
        return False
    if type(x) is np.ndarray and comm.library.host_arrays:
        at = comm.library.address("ncclAllReduce")
        result = run_nccl_allreduce(at, comm.handle, x, out, code)
        if result == SUCCESS:
            return True
        if result != _MISSED:
            comm.settle("ncclAllReduce", result)
            return True
    send = plain(x)
    recv = send if out is None else plain(out)
    if send is None or recv is None or not _fits(comm, send, recv):
        return False
    address, elements, dtype, _, stream = send
    function = comm.library.function("ncclAllReduce")
    result = function(address, recv[0], elements, dtype, code, comm.handle, stream)
    if result != SUCCESS:
        comm.settle("ncclAllReduce", result)
    return True


def message(comm: Rank, function: str, array: Any, peer: Any, size: int) -> bool:
    """Make ncclSend or ncclRecv if it is a plain one; return whether it was made."""
    if type(peer) is not int or not 0 <= peer < size or comm.busy or groups.OPEN:
        return False
    side = plain(array)
    if side is None or not _fits(comm, side, side):
        return False
    address, elements, dtype, _, stream = side
    result = comm.library.function(function)(address, elements, dtype, peer, comm.handle, stream)
    if result != SUCCESS:
        comm.settle(function, result)
    return True


def plain(x: Any) -> Plain | None:
    """Return what NCCL takes of an array; None where it is not of the usual kind."""
    if type(x) is np.ndarray:
        found = _borrow(x)
        if found is None:
            return None
        code = _CODES.get(found[2])
        return None if code is None else (int(_cast(_WORD, found[0])), found[1], code, HOST, 0)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and type(x) is getattr(torch, "Tensor", None):
        return _tensor(torch, x)
    if cupy is not None and type(x) is getattr(cupy, "ndarray", None):
        return _of_cupy(cupy, x)
    return None


def _of_cupy(cupy: Any, x: Any) -> Plain | None:
    code = _NUMPY.get(x.dtype)
    if code is None or not x.flags.c_contiguous or given_stream() is not None:
        return None
    stream = cupy.cuda.get_current_stream().ptr or LEGACY
    return x.data.ptr, x.size, code, x.data.device_id, stream


def _tensor(torch: Any, x: Any) -> Plain | None:
    code = (_torch_codes or _meet_torch(torch)).get(x.dtype)
    if code is None or not x.is_cuda or x.requires_grad or x.layout is not torch.strided:
        return None
    if not x.is_contiguous() or x.is_neg() or given_stream() is not None:
        return None
    device = x.get_device()
    return x.data_ptr(), x.numel(), code, device, _stream_of_torch(torch, device) or LEGACY


def _stream_of_torch(torch: Any, device: int) -> int:
    """Return the current stream; as torch's own compilers ask for it, without making an object."""
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return int(raw(device))
    return int(torch.cuda.current_stream(device).cuda_stream)


def _fits(comm: Rank, send: Plain, recv: Plain) -> bool:
    """Whether two arrays are alike, on this rank's device, and one or apart."""
    if send is not recv:
        if send[1:] != recv[1:]:
            return False
        apart = abs(send[0] - recv[0])
        if apart and apart < send[1] * _SIZES[send[2]]:
            return False
    return comm.library.host_arrays if send[3] == HOST else send[3] == comm.device


def _meet_torch(torch: Any) -> dict[Any, int]:
    known = {getattr(torch, name, None): code for name, code in CODES.items()}
    known.pop(None, None)
    _torch_codes.update(known)
    return _torch_codes
