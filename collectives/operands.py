# SPDX-License-Identifier: Apache-2.0
"""Operands of every dtype and operation whose fold is exact in any order, and that fold.

Floating-point sums are made of small integers, products of powers of two, integers wrap around.
Where one operand hides all others (a zero decides ``land``), all ranks but one have the neutral
element, another rank at each place: so every contribution that is lost changes a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")
PAIRS = ("float32_int32", "float64_int64", "int32_int32", "int64_int64")
DTYPES = (*FLOATS, *INTEGERS, "bool", *COMPLEX, *PAIRS)

LOGICAL = ("land", "lor", "lxor")
BITWISE = ("band", "bor", "bxor")
OPS = ("sum", "prod", "min", "max", "avg", *LOGICAL, *BITWISE, "minloc", "maxloc")

# Of floats: the digits of the mantissa, the first one counted, and the largest exponent up to which
# powers of two of both signs are exact.
_DIGITS = {
    "float32": 24, "float64": 53, "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4,
    "float8_e5m2": 3, "complex64": 24, "complex128": 53,
}  # fmt: skip
_EXPONENTS = {"float16": 14, "float8_e4m3fn": 6, "float8_e5m2": 14}
_MOST_EXPONENTS = 120
_LARGE = 1 << 20
_WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32}  # by size; else uint64

_UFUNCS: dict[str, Any] = {
    "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
    "land": np.logical_and, "lor": np.logical_or, "lxor": np.logical_xor,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype called `name`; ``ValueError`` where there is none.

    Pairs, such as float32_int32, are records with the fields ``value`` and ``index``.
    """
    if name not in DTYPES:
        raise ValueError(f"dtype {name!r} is unknown; choose one of {', '.join(DTYPES)}")
    if name in PAIRS:
        value, index = name.split("_")
        return np.dtype([("value", value), ("index", index)])
    if name != "bfloat16" and not name.startswith("float8"):
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise ValueError(
            f"dtype {name} needs the package ml_dtypes; install it with: pip install ml_dtypes"
        ) from None
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


def ops_of(name: str) -> tuple[str, ...]:
    """Return the operations that are defined on the dtype called `name`."""
    if name in PAIRS:
        return ("minloc", "maxloc")
    if name in COMPLEX:
        return ("sum", "prod", "avg")
    return ("sum", "prod", "min", "max", *(("avg",) if name in FLOATS else BITWISE), *LOGICAL)


def operands(
    name: str, op: str | None, shape: tuple[int, int], generator: np.random.Generator
) -> Array:
    """Draw the operands of `op` on the dtype called `name`, shape (ranks, n); op None: any."""
    dtype = dtype_of(name)
    if name == "bool":
        op = _of_truths(op)
    if name in PAIRS:
        records = np.empty(shape, dtype)
        records["value"] = generator.integers(-50, 50, shape, endpoint=True)  # ties as well
        records["index"] = generator.integers(0, _LARGE, shape)
        return records
    if op in LOGICAL:
        truths = generator.integers(0, 1, shape, endpoint=True)
        return np.asarray((_alone(truths, 0 if op == "lor" else 1, op) * 3).astype(dtype))
    if name == "bool":
        return np.asarray(generator.integers(0, 1, shape, endpoint=True).astype(dtype))
    if name in INTEGERS:
        bounds = np.iinfo(dtype)
        values = generator.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
        if op in ("band", "bor"):
            return _alone(values, dtype.type(0) if op == "bor" else ~dtype.type(0), op)
        # Odd factors never multiply to zero, whatever wraps around.
        return values | dtype.type(1) if op == "prod" else values
    if op == "prod":
        return _factors(name, shape, generator).astype(dtype)
    if name in COMPLEX:
        parts = [_whole_numbers(name, op, shape, generator) for _ in range(2)]
        return np.asarray((parts[0] + 1j * parts[1]).astype(dtype))
    return _whole_numbers(name, op, shape, generator).astype(dtype)


def _alone(values: Array, neutral: Any, op: str) -> Array:
    """Leave one rank's value at each place, another's at the next; the rest hides nothing."""
    if op in ("lxor", "bxor"):
        return values
    ranks, n = values.shape
    chosen = np.arange(ranks)[:, np.newaxis] == np.arange(n) % ranks
    return np.where(chosen, values, neutral).astype(values.dtype)


def _factors(name: str, shape: tuple[int, int], generator: np.random.Generator) -> Array:
    reach = 1 if shape[0] <= _EXPONENTS.get(name, _MOST_EXPONENTS) else 0
    exponents = generator.integers(-reach, reach, shape, endpoint=True)
    units = [1, -1, 1j, -1j] if name in COMPLEX else [1.0, -1.0]
    return np.asarray(generator.choice(units, shape) * np.ldexp(1.0, exponents))


def _whole_numbers(
    name: str, op: str | None, shape: tuple[int, int], generator: np.random.Generator
) -> Array:
    """Draw numbers whose sum is exact, in whatever order."""
    most = min(1 << _DIGITS[name], _LARGE)
    if op not in ("sum", "avg"):
        return generator.integers(-most, most, shape, endpoint=True)
    ranks, n = shape
    values = generator.integers(-max(most // ranks, 1), max(most // ranks, 1), shape, endpoint=True)
    # Where that is too much for so many ranks, only some have more than 0 at each place.
    turn = (np.arange(ranks)[:, np.newaxis] + np.arange(n)) % ranks
    return np.where(turn < most, values, 0)


def _of_truths(op: str | None) -> str | None:
    """Return the logical operation that `op` is on truths."""
    either, both = ("sum", "max", "bor"), ("prod", "min", "band")
    return "lor" if op in either else "land" if op in both else "lxor" if op == "bxor" else op


def reduced(values: Array, op: str) -> Array:
    """Fold the rows of `values`, shape (ranks, n), to the one right answer, shape (n,)."""
    dtype = values.dtype
    if len(values) == 1:
        return np.asarray(values[0])  # nothing is folded
    if op in ("minloc", "maxloc"):
        return _located(values, op)
    if op in LOGICAL:
        return np.asarray(_UFUNCS[op].reduce(values != 0, axis=0).astype(dtype))
    if dtype.kind in "iub":
        # Integers wrap around, as C does; bool is or and and.
        return np.asarray(_UFUNCS[op].reduce(values, axis=0, dtype=dtype))
    if op in ("min", "max"):
        return np.asarray(_UFUNCS[op].reduce(values, axis=0))
    wide = values.astype(_wide(dtype))
    total = wide.prod(axis=0) if op == "prod" else wide.sum(axis=0)
    return np.asarray((total / len(values) if op == "avg" else total).astype(dtype))


def _located(values: Array, op: str) -> Array:
    result = values[0]
    before = np.less if op == "minloc" else np.greater
    for row in values[1:]:
        tie = (row["value"] == result["value"]) & (row["index"] < result["index"])
        result = np.where(before(row["value"], result["value"]) | tie, row, result)
    return np.asarray(result)


def _wide(dtype: np.dtype[Any]) -> type[Any]:
    return np.complex128 if dtype.kind == "c" else np.float64


def different(result: Array, expected: Array) -> int:
    """Count elements whose bits differ; of complex numbers not by the sign of a zero.

    That of a product depends on the order of its factors.
    """
    word = _WORDS.get(result.dtype.itemsize, np.uint64)
    wrong = result.view(word) != expected.view(word)
    if result.dtype.itemsize > 8:
        wrong = wrong.reshape(*result.shape, 2).any(axis=-1)
    if result.dtype.kind == "c":
        wrong &= result != expected
    return int(np.count_nonzero(wrong))


def inaccurate(result: Array, expected: Array) -> int:
    """Count elements further than two units in the last place from `expected`.

    An average by 3 ranks is a quotient, which is rounded.
    """
    place = 2.0 ** (1 - _DIGITS[result.dtype.name])
    wide, right = result.astype(_wide(result.dtype)), expected.astype(_wide(result.dtype))
    near = np.abs(wide - right) <= 2 * place * np.abs(right)
    return int(np.count_nonzero(~near))
