# SPDX-License-Identifier: Apache-2.0
"""What reproducible sums are by definition, in NumPy: the oracle of their tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tests.oracle import DTYPES

NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
FLOATS = ("float32", "float64", "complex64", "complex128", *NARROW)


def operands(dtype: str, rank: int, n: int, seed: int = 0) -> Any:
    """Draw numbers whose exponents are far apart, so that every order of additions tells."""
    draw = np.random.default_rng([seed, rank, FLOATS.index(dtype)])
    spread = {"float16": 6, "float8_e4m3fn": 3, "float8_e5m2": 5}.get(dtype, 20)

    def reals() -> Any:
        return draw.standard_normal(n) * np.exp2(draw.integers(-spread, spread, n))

    values = reals() + 1j * reals() if dtype.startswith("complex") else reals()
    return values.astype(DTYPES[dtype])


def canonical(rows: Sequence[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Fold rows: split at the largest power of two below their number, and so both parts."""
    if len(rows) == 1:
        return rows[0]
    half = 1 << ((len(rows) - 1).bit_length() - 1)
    return join(canonical(rows[:half], join), canonical(rows[half:], join))


def canonical_fold(rows: Sequence[Any], op: str) -> Any:
    """Return the reproducible result: narrow floats are folded in float32 and rounded once."""
    dtype = rows[0].dtype
    if len(rows) == 1:
        return rows[0]
    wide = [row.astype(np.float32) if dtype.itemsize < 4 else row for row in rows]
    with np.errstate(all="ignore"):
        result = canonical(wide, product if op == "prod" else np.add)
        if op == "avg":
            result = divided(result, len(rows))
        return result.astype(dtype)


def product(a: Any, b: Any) -> Any:
    """Multiply complex numbers by the formula: NumPy's own may be fused."""
    if a.dtype.kind != "c":
        return a * b
    result = np.empty_like(a)
    result.real = a.real * b.real - a.imag * b.imag
    result.imag = a.real * b.imag + a.imag * b.real
    return result


def divided(values: Any, n: int) -> Any:
    """Divide complex numbers part by part."""
    part = np.zeros(1, values.dtype).real.dtype
    return (values.view(part) / part.type(n)).view(values.dtype)


def exact(rows: Sequence[Any], op: str) -> Any:
    """Return the sum or average of the exact numbers, rounded once to float32 or float64."""
    part = np.zeros(1, rows[0].dtype).real.dtype
    columns = np.stack([row.view(part) for row in rows]).astype(np.float64).T
    parts = len(rows) if op == "avg" else 1
    values = [_rounded(sum(map(Fraction, c), Fraction(0)) / parts, part) for c in columns.tolist()]
    return np.array(values, part).view(rows[0].dtype)


def _rounded(value: Fraction, part: np.dtype[Any]) -> Any:
    """Round once: Python rounds a fraction to float64 by itself; float32 is looked for."""
    if part == np.float64:
        return value.numerator / value.denominator
    near = np.float32(float(value))
    around = [
        near,
        np.nextafter(near, np.float32(math.inf)),
        np.nextafter(near, -np.float32(math.inf)),
    ]

    def distance(one: Any) -> tuple[Fraction, int]:
        return abs(Fraction(float(one)) - value), int(one.view(np.uint32)) % 2

    return min(around, key=distance)
