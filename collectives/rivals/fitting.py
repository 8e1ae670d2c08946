# SPDX-License-Identifier: Apache-2.0
"""What of our calls NCCL can do with the same meaning, and what it is passed then.

Whether it can is told by what is equal on all ranks alone: kind, dtype, operation and options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from collectives import arrays
from collectives._ffi import ffi
from collectives.arrays import Operand
from collectives.names import AUTOMATIC, OPS, Options
from collectives.nccl.arrays import CODES
from collectives.nccl.constants import OPS as THEIRS
from collectives.nccl.declarations import SINCE
from collectives.nccl.versions import Version

FUNCTIONS = {
    "allreduce": "ncclAllReduce",
    "reduce_scatter": "ncclReduceScatter",
    "allgather": "ncclAllGather",
    "broadcast": "ncclBroadcast",
    "reduce": "ncclReduce",
    "alltoall": "ncclAlltoAll",
}
FOLDS = ("allreduce", "reduce_scatter", "reduce")
_INTEGERS = ("int8", "uint8", "int32", "uint32", "int64", "uint64")
_FLOATS = ("float16", "float32", "float64", "bfloat16")
_CODES = {arrays.DTYPES[name]: CODES[name] for name in (*_INTEGERS, *_FLOATS)}
_WHOLE = {arrays.DTYPES[name] for name in _INTEGERS}
_OPS = {OPS["sum"]: THEIRS["ncclSum"], OPS["prod"]: THEIRS["ncclProd"]}
# Of floats a NaN of any rank is our result, which NCCL does not promise.
_ORDERED = {OPS["min"]: THEIRS["ncclMin"], OPS["max"]: THEIRS["ncclMax"]}
_BYTES = CODES["uint8"]


class Fit(NamedTuple):
    """What NCCL calls a call: its function, its dtype, its operation; ``unit`` of our elements."""

    kind: str
    function: str
    dtype: int
    unit: int
    op: int


def fitting(
    kind: str, dtype: int, op: int, options: Options, counts: Sequence[int] | None
) -> Fit | str:
    """Return how NCCL makes a call, or why it cannot."""
    if kind not in FUNCTIONS:
        return f"NCCL has no {kind} here"
    if counts is not None:
        return "NCCL has no parts of unequal length"
    if (options[1], *options[3:]) != (AUTOMATIC[1], *AUTOMATIC[3:]):
        return "NCCL has no mode=, accumulate= and reproducible="
    if kind not in FOLDS:
        return Fit(kind, FUNCTIONS[kind], _BYTES, arrays.SIZES[dtype], 0)
    code = _CODES.get(dtype)
    known = _OPS | _ORDERED if dtype in _WHOLE else _OPS
    if code is None or op not in known:
        word = next((name for name, number in OPS.items() if number == op), "an operation")
        return f"NCCL has no {word} of {arrays.NAMES[dtype]} with our results"
    return Fit(kind, FUNCTIONS[kind], code, 1, known[op])


def lacks(fit: Fit, version: Version) -> str:
    """Return what a version of NCCL lacks for a call; "": nothing."""
    since = SINCE[fit.function]
    return "" if version >= since else f"{fit.function} came with NCCL {since}, here is {version}"


def arguments(
    fit: Fit, source: Operand, target: Operand | None, root: int, size: int
) -> tuple[int, ...]:
    """Return what comes before communicator and stream."""
    to = 0 if target is None else address(target)
    count = source.elements
    if fit.kind == "reduce_scatter" or fit.kind == "alltoall":
        count //= size
    end = {"broadcast": (root,), "reduce": (fit.op, root)}.get(fit.kind, ())
    if fit.kind in ("allreduce", "reduce_scatter"):
        end = (fit.op,)
    return (address(source), to, count * fit.unit, fit.dtype, *end)


def lies_well(fit: Fit, source: Operand, target: Operand | None, rank: int, size: int) -> bool:
    """Whether arrays lie apart, or in place as NCCL wants it. On this rank."""
    if target is None or _apart(source, target):
        return True
    begin, to = address(source), address(target)
    length, room = bytes_of(source), bytes_of(target)
    if fit.kind == "alltoall":
        return False
    if fit.kind == "allgather":
        return begin == to + rank * length
    if fit.kind == "reduce_scatter":
        return to == begin + rank * room
    return begin == to


def lies_apart(source: Operand, target: Operand | None) -> bool:
    """Whether arrays are one array, or have nothing in common. On this rank."""
    return target is None or address(source) == address(target) or _apart(source, target)


def _apart(source: Operand, target: Operand) -> bool:
    begin, to = address(source), address(target)
    return begin >= to + bytes_of(target) or to >= begin + bytes_of(source)


def bytes_of(side: Operand) -> int:
    """Return the bytes of an array."""
    return side.elements * arrays.SIZES[side.dtype]


def whole(source: Operand, target: Operand | None) -> int:
    """Return the bytes of the vector of a call; of an alltoall those that one rank hands in."""
    return max(bytes_of(source), 0 if target is None else bytes_of(target))


def address(side: Operand) -> int:
    """Return where an array begins."""
    return int(ffi.cast("uintptr_t", side.pointer))
