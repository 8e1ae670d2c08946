# SPDX-License-Identifier: Apache-2.0
"""Inputs with exact results, and the results, computed by NumPy alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DTYPES = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint8": np.dtype(np.uint8),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
INTEGERS = ("int32", "int64", "uint8")
OPS = ("sum", "prod", "min", "max", "avg")


def contribution(dtype: str, op: str, rank: int, p: int, count: int) -> Array:
    """Rank ``rank``'s operand, shape (count,): small numbers, different at each place and rank."""
    return _contribution(dtype, op, rank, p, count).copy()


@lru_cache(maxsize=512)
def _contribution(dtype: str, op: str, rank: int, p: int, count: int) -> Array:
    place = np.arange(count, dtype=np.int64)
    mixed = (place * 7 + place // 13 + rank * 3) % 11
    if op == "prod":
        mixed = 1 + mixed % 2  # at most 2^p: exact even in bfloat16
    elif op == "avg":
        mixed = place % 7 + 2 * rank - (p - 1)  # the mean over ranks is place % 7
    elif dtype != "uint8":
        mixed = mixed - 5
    return mixed.astype(DTYPES[dtype])


@lru_cache(maxsize=512)
def reduction(dtype: str, op: str, p: int, count: int) -> Array:
    """The result of reducing all ranks' operands, shape (count,)."""
    rows = np.stack([_contribution(dtype, op, r, p, count).astype(np.int64) for r in range(p)])
    folds: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max}
    if op == "avg":
        return (np.arange(count) % 7).astype(DTYPES[dtype])
    return np.asarray(folds[op](rows, axis=0).astype(DTYPES[dtype]))


@lru_cache(maxsize=512)
def gathered(dtype: str, p: int, count: int) -> Array:
    """All ranks' operands one after the other, shape (p * count,)."""
    return np.concatenate([_contribution(dtype, "sum", r, p, count) for r in range(p)])


def differs(got: Any, wanted: Array, op: str = "sum") -> str | None:
    """Say where an array is not what it should be; None where it is.

    Sums are exact. An average is multiplied by 1/p, so it may be off by a rounding.
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
    return array.astype(np.float64)
