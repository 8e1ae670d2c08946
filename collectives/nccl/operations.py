# SPDX-License-Identifier: Apache-2.0
"""What a collective folds with: NCCL's five operations, and sums of scaled values."""

from __future__ import annotations

import math
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from collectives import arrays as host_arrays
from collectives.errors import ClosedError, InvalidArgumentError
from collectives.names import choose_from, integer, real
from collectives.nccl.arrays import CODES, HOST, Operand, operand
from collectives.nccl.constants import OPS, RESIDENCES
from collectives.nccl.declarations import ffi
from collectives.topology.checked import shown

if TYPE_CHECKING:
    from collectives.nccl.caller import Caller

NAMES: dict[str, int] = {
    "sum": OPS["ncclSum"],
    "prod": OPS["ncclProd"],
    "min": OPS["ncclMin"],
    "max": OPS["ncclMax"],
    "avg": OPS["ncclAvg"],
}


class PreMulSum:
    """A sum of values that are multiplied first, by a factor of this rank.

    ``comm.pre_mul_sum(factor, dtype)`` makes it, for arrays of that dtype on that communicator; it
    is given as ``op``. ``close()``, or the end of a ``with`` block, gives it back; so does the end
    of its communicator.
    """

    def __init__(self, comm: Caller, factor: Any, dtype: str) -> None:
        self._comm, self.dtype = comm, dtype
        address, residence, self._kept = _scalar(factor, dtype, comm)
        number = ffi.new("int *")
        arguments = (number, address, CODES[dtype], residence, comm.handle)
        comm.finish("ncclRedOpCreatePreMulSum", *arguments, kept=(self._kept,))
        self._code: int | None = number[0]

    def code_for(self, comm: Caller, call: str, side: Operand) -> int:
        """Return its number for a call. Raises what is wrong with it."""
        if self._code is None:
            raise ClosedError(f"{call}: op was closed")
        if comm is not self._comm:
            raise InvalidArgumentError(f"{call}: op was made for another communicator")
        if side.dtype != self.dtype:
            raise InvalidArgumentError(
                f"{call}: op was made for {self.dtype}, and x has {side.dtype}"
            )
        return self._code

    def close(self) -> None:
        """Give it back; calls that were made with it go on."""
        code, self._code = self._code, None
        if code is not None and not self._comm.closed:
            self._comm.finish("ncclRedOpDestroy", code, self._comm.handle)

    def __enter__(self) -> PreMulSum:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# "sum", "prod", "min", "max", "avg", or what comm.pre_mul_sum() made.
Op: TypeAlias = str | PreMulSum


def code_of(comm: Caller, call: str, op: Op, side: Operand) -> int:
    """Return the number of an operation on an array. Raises InvalidArgumentError."""
    if side.dtype not in CODES:
        raise InvalidArgumentError(
            f"{call}: NCCL has no arithmetic on {side.dtype}: supported are {', '.join(CODES)}"
        )
    if isinstance(op, PreMulSum):
        return op.code_for(comm, call, side)
    return NAMES[choose_from(op, NAMES, f"{call}: op")]


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype of NumPy or torch. Raises InvalidArgumentError."""
    if isinstance(dtype, str):
        name = dtype
    elif type(dtype).__module__ == "torch":
        name = str(dtype).removeprefix("torch.")
    else:
        name = np.dtype(dtype).name
    return choose_from(name, CODES, "dtype")


def _scalar(factor: Any, dtype: str, comm: Caller) -> tuple[int, int, Any]:
    """Return the address of a factor, where it is, and what keeps it there."""
    if hasattr(factor, "__cuda_array_interface__") or hasattr(factor, "data_ptr"):
        side = operand(factor, "pre_mul_sum: factor", True)
        if side.elements != 1 or side.dtype != dtype:
            raise InvalidArgumentError(
                f"pre_mul_sum: factor has {side.elements} elements of {side.dtype}: give one of "
                f"{dtype}"
            )
        kind = "ncclScalarHostImmediate" if side.device == HOST else "ncclScalarDevice"
        return side.address, RESIDENCES[kind], side.array
    kept = ffi.new("char[]", _element(factor, dtype))
    return int(ffi.cast("uintptr_t", kept)), RESIDENCES["ncclScalarHostImmediate"], kept


def _element(factor: Any, dtype: str) -> bytes:
    """Return a number as it lies in an array; of integers exactly, of floats rounded once."""
    wide, whole = real(factor), integer(factor)
    if whole is None and wide.is_integer() and int(wide) == factor:
        whole = int(wide)
    if whole is None and math.isnan(wide):
        raise InvalidArgumentError(f"pre_mul_sum: factor is {shown(factor)}: give a number")
    kind = host_arrays.numpy_dtype(host_arrays.DTYPES[dtype])
    if "int" in dtype:
        limits = np.iinfo(kind)
        if whole is None or not limits.min <= whole <= limits.max:
            raise InvalidArgumentError(
                f"pre_mul_sum: factor is {shown(factor)}, which {dtype} does not hold: give a "
                f"whole number from {limits.min} to {limits.max}"
            )
        return np.array([whole], kind).tobytes()
    with np.errstate(over="ignore", invalid="ignore"):  # it is looked at below
        made = np.array([wide]).astype(kind)
    # What is finite stays so, and infinity what it is: float8_e4m3fn has none.
    if math.isnan(wide) or math.isinf(wide) != math.isinf(made[0]) or math.isnan(made[0]):
        raise InvalidArgumentError(
            f"pre_mul_sum: factor is {shown(factor)}, which {dtype} does not hold: it is too large"
        )
    return made.tobytes()
