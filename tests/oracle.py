# SPDX-License-Identifier: Apache-2.0
"""Inputs with exact results, and the results, computed by NumPy alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")
PAIRS = ("float32_int32", "float64_int64", "int32_int32", "int64_int64")

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, name, name)) for name in (*FLOATS, *INTEGERS, *COMPLEX)
}
DTYPES["bool"] = np.dtype(np.bool_)
DTYPES |= {
    name: np.dtype(list(zip(("value", "index"), name.split("_"), strict=True))) for name in PAIRS
}

_LOGICAL: dict[str, Any] = {
    "land": np.logical_and, "lor": np.logical_or, "lxor": np.logical_xor,
}  # fmt: skip
_BITWISE: dict[str, Any] = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}
# What operations are to truths.
_OF_BOOL = {"sum": "lor", "max": "lor", "bor": "lor", "prod": "land", "min": "land",
            "band": "land", "bxor": "lxor"}  # fmt: skip


def ops_of(dtype: str) -> tuple[str, ...]:
    """Return the operations that are defined on a dtype."""
    if dtype in PAIRS:
        return ("minloc", "maxloc")
    if dtype in COMPLEX:
        return ("sum", "prod", "avg")
    rest = ("avg",) if dtype in FLOATS else tuple(_BITWISE)
    return ("sum", "prod", "min", "max", *_LOGICAL, *rest)


def contribution(dtype: str, op: str, rank: int, p: int, count: int) -> Array:
    """Rank ``rank``'s operand, shape (count,): small numbers, different at each place and rank."""
    return _contribution(dtype, op, rank, p, count).copy()


@lru_cache(maxsize=1024)
def _contribution(dtype: str, op: str, rank: int, p: int, count: int) -> Array:
    place = np.arange(count, dtype=np.int64)
    mixed = (place * 7 + place // 13 + rank * 3) % 11
    kind = DTYPES[dtype]
    if dtype in PAIRS:
        records = np.empty(count, kind)
        records["value"], records["index"] = mixed % 5 - 2, (place + 3 * rank) % 7  # many ties
        return records
    op = _OF_BOOL.get(op, op) if dtype == "bool" else op
    if op == "land":
        mixed = mixed % 4
    elif op in ("lor", "lxor"):
        mixed = 3 * (mixed % 4 == 0)
    elif op in _BITWISE:
        mixed = ~(1 << mixed % 7) if op == "band" else 1 << mixed % 7
    elif dtype in COMPLEX:
        units = np.array([1, 1j, -1, -1j])[mixed % 4]
        numbers = units if op == "prod" else mixed - 5 + 1j * (mixed * 3 % 7 - 3)
        return np.asarray(numbers.astype(kind))
    elif op == "prod":
        mixed = 1 + mixed % 2 * (rank < 8)  # at most 2^8: exact in every float
    elif kind.itemsize == 1 and dtype in FLOATS:
        mixed = (mixed % 3 - 1) * (rank < 8)  # sums of up to 8 are exact
    elif op == "avg":
        mixed = place % 7 + 2 * rank - (p - 1)  # the mean over ranks is place % 7
    elif not dtype.startswith("uint"):
        mixed = mixed - 5
    return np.asarray(mixed.astype(kind))


@lru_cache(maxsize=1024)
def reduction(dtype: str, op: str, p: int, count: int) -> Array:
    """The result of reducing all ranks' operands, shape (count,)."""
    rows = np.stack([_contribution(dtype, op, r, p, count) for r in range(p)])
    kind = DTYPES[dtype]
    if p == 1:
        return np.asarray(rows[0])  # nothing is folded
    if dtype in PAIRS:
        return _located(rows, op)
    op = _OF_BOOL.get(op, op) if dtype == "bool" else op
    if op in _LOGICAL:
        return np.asarray(_LOGICAL[op].reduce(rows != 0, axis=0).astype(kind))
    if op in _BITWISE:
        return np.asarray(_BITWISE[op].reduce(rows, axis=0))
    wide = rows.astype(np.complex128 if dtype in COMPLEX else np.float64)
    if op == "avg":
        return np.asarray((wide.sum(axis=0) / p).astype(kind))
    folds: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max}
    if dtype in INTEGERS:
        wide = rows.astype(np.int64)
    return np.asarray(folds[op](wide, axis=0).astype(kind))


def _located(rows: Array, op: str) -> Array:
    result = rows[0].copy()
    for row in rows[1:]:
        nearer = (
            row["value"] < result["value"] if op == "minloc" else row["value"] > result["value"]
        )
        tie = (row["value"] == result["value"]) & (row["index"] < result["index"])
        result = np.where(nearer | tie, row, result)
    return np.asarray(result)


@lru_cache(maxsize=512)
def gathered(dtype: str, p: int, count: int) -> Array:
    """All ranks' operands one after the other, shape (p * count,)."""
    return np.concatenate([_contribution(dtype, "sum", r, p, count) for r in range(p)])


def differs(got: Any, wanted: Array, op: str = "sum") -> str | None:
    """Say where an array is not what it should be; None where it is.

    Sums are exact. An average is a sum divided by p, so it may be off by a rounding.
    """
    got = np.asarray(got)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{got.shape} instead of {wanted.dtype}{wanted.shape}"
    exact = op != "avg"
    close = got == wanted if exact else np.isclose(_wide(got), _wide(wanted), rtol=1e-2, atol=1e-6)
    if close.all():
        return None
    wrong = np.argwhere(~close)
    first = tuple(int(i) for i in wrong[0])
    return f"{len(wrong)} of {got.size} wrong, at {first}: {got[first]}, not {wanted[first]}"


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
