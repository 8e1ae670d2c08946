# SPDX-License-Identifier: Apache-2.0
"""What every rank hands in, and what NumPy says comes out, bit by bit.

Vectors repeat a short period, so that the right answer costs a copy however long the vector is.
Values are chosen so that every order of folding gives the same bits: small integers for sums, units
for products.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]

PERIOD = 251  # prime: no chunk boundary falls on a multiple

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")
PAIRS = ("float32,int32", "float64,int64", "int32,int32", "int64,int64")
DTYPES = (*INTEGERS, *FLOATS, *COMPLEX, "bool", *PAIRS)

_ORDERED = ("sum", "prod", "min", "max")
_LOGICAL = ("land", "lor", "lxor")
_BITWISE = ("band", "bor", "bxor")


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a name in DTYPES."""
    if "," in name:
        value, index = name.split(",")
        return np.dtype([("value", value), ("index", index)])
    return np.dtype(getattr(ml_dtypes, name, name))


def ops_of(name: str) -> tuple[str, ...]:
    """Return the operations that are defined on a dtype."""
    if name in PAIRS:
        return ("minloc", "maxloc")
    if name in COMPLEX:
        return ("sum", "prod", "avg")
    if name in FLOATS:
        return (*_ORDERED, "avg", *_LOGICAL)
    return (*_ORDERED, *_LOGICAL, *_BITWISE)


@cache
def rows(dtype: str, op: str, ranks: int) -> Vector:
    """One period of every rank's vector, shape (ranks, PERIOD)."""
    generator = np.random.default_rng([ranks, DTYPES.index(dtype), len(op)])
    shape = (ranks, PERIOD)
    kind = dtype_of(dtype)
    if dtype in PAIRS:
        pairs = np.empty(shape, kind)
        pairs["value"] = generator.integers(-3, 3, shape)  # many ties
        pairs["index"] = generator.permutation(ranks * PERIOD).reshape(shape)
        return pairs
    if dtype in COMPLEX:
        units = np.array([1, -1, 1j, -1j])
        return np.asarray(generator.choice(units, shape).astype(kind))
    if op == "prod" and dtype in FLOATS:
        return np.asarray(generator.choice([-1.0, 1.0], shape).astype(kind))
    if dtype == "bool":
        return np.asarray(generator.integers(0, 2, shape).astype(kind))
    if dtype in INTEGERS:
        bounds = np.iinfo(kind)
        return np.asarray(generator.integers(bounds.min, bounds.max, shape, kind, endpoint=True))
    # Sums of 8 of them are exact in every format.
    return np.asarray(generator.integers(-1, 2, shape).astype(kind))


def fold(values: Vector, op: str) -> Vector:
    """Fold the rows of ``values``; sums and products of floats are exact here."""
    kind = values.dtype
    if len(values) == 1:
        return np.asarray(values[0])  # what meets no other operand stays as it is
    if op in ("minloc", "maxloc"):
        return _located(values, op)
    if op in _LOGICAL:
        function = {"land": np.logical_and, "lor": np.logical_or, "lxor": np.logical_xor}[op]
        return np.asarray(function.reduce(values.astype(bool), axis=0).astype(kind))
    if op in _BITWISE:
        bitwise = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}[op]
        return np.asarray(bitwise.reduce(values, axis=0))
    if op in ("min", "max"):
        return np.asarray(values.min(axis=0) if op == "min" else values.max(axis=0))
    if kind == np.bool_:
        return np.asarray(values.any(axis=0) if op == "sum" else values.all(axis=0))
    wide = values if kind.kind in "iu" else values.astype(_wide(kind))
    folded = (wide.prod if op == "prod" else wide.sum)(axis=0, dtype=wide.dtype)
    return np.asarray((folded / len(values) if op == "avg" else folded).astype(kind))


def _wide(kind: np.dtype[Any]) -> type:
    return np.complex128 if kind.kind == "c" else np.float64


def _located(values: Vector, op: str) -> Vector:
    """Take the least (largest) value of every column; of equal ones that of the least index."""
    sign = 1 if op == "minloc" else -1
    order = np.lexsort((values["index"], sign * values["value"]), axis=0)[0]
    return np.asarray(values[order, np.arange(values.shape[1])])


def vector(period: Vector, start: int, length: int) -> Vector:
    """Elements [start, start + length) of the endless repetition of a period."""
    return np.resize(np.roll(period, -(start % PERIOD)), length)


def same(got: Vector, wanted: Vector, op: str | None) -> bool:
    """Whether the result is right: equal bits, or, of an average, near enough."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return False
    if op == "avg":
        wide = _wide(got.dtype)
        digits = 2.0 ** (-1 if got.dtype.itemsize == 1 else -7 if got.dtype.itemsize == 2 else -22)
        return bool(np.allclose(got.astype(wide), wanted.astype(wide), rtol=digits, atol=0))
    # Zeros of either sign are equal: units multiplied in another order give the other.
    return got.tobytes() == wanted.tobytes() or bool(np.array_equal(got, wanted))
