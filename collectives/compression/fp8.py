# SPDX-License-Identifier: Apache-2.0
"""Sums in eight bits: floats with a scale that all ranks agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collectives.compression.agreement import compared
from collectives.compression.codec import Vector
from collectives.compression.time_left import TimeLeft
from collectives.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collectives.reductions import Reductions

_LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
_LEAST_IN_FLOAT32 = 2.0**-100
_NAMES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


@dataclass(frozen=True)
class FP8:
    """Gradients added up as 8-bit floats: ``allreduce(x, compress=cl.FP8())``.

    The ranks agree on their largest magnitude, s. Each contribution is rounded to a float of eight
    bits, of which the largest stands for s * size, so that no sum is out of range; the sum is made
    in float32 and rounded once more. So each rounding is within 2^-4 of a number ("e4m3") or 2^-3
    ("e5m2"), or, of small ones, within s * size * 2^-18 (2^-31). Where some rank has a NaN or an
    infinity nothing is rounded, and the result is that of the plain allreduce. Needs ml_dtypes.

    Attributes:
        format: "e4m3" (four bits of exponent, three of mantissa) or "e5m2".

    Raises InvalidArgumentError for another format, or without ml_dtypes.
    """

    format: str = "e4m3"

    def __post_init__(self) -> None:
        """Refuse other formats."""
        if not isinstance(self.format, str) or self.format not in _NAMES:
            raise InvalidArgumentError(f"FP8: format is {self.format!r}: it is 'e4m3' or 'e5m2'")
        self._dtype()

    def _dtype(self) -> np.dtype[Any]:
        try:
            import ml_dtypes
        except ImportError:
            raise InvalidArgumentError(
                "FP8 needs the package ml_dtypes: pip install ml_dtypes"
            ) from None
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _NAMES[self.format]))
        return found

    def reduce(self, comm: Reductions, x: Vector, op: str, timeout: float | None) -> Vector:
        """Agree on the scale, add up eight bits each, scale back."""
        left = TimeLeft(comm, timeout)
        own = np.abs(x).max(initial=0) if x.size else 0
        most = np.array([own], np.float64)
        how_made = f"FP8 ({self.format})"
        compared(comm, most, "max", left(), how_made=how_made, of=x)
        scale = float(most[0]) * comm.size / _LARGEST[self.format]
        if not np.isfinite(scale) or scale == 0:
            result: Vector = comm.allreduce(x.copy(), op=op, timeout=left())
            return result
        # Contributions are added by one op, in float32.
        wide = _wide(x.dtype, scale)
        code = (x.astype(wide) / wide.type(scale)).astype(self._dtype())
        comm.allreduce(code, op=op, algorithm="direct_two_shot", timeout=left())
        with np.errstate(over="ignore"):  # a sum beyond the dtype is infinite, as without
            total: Vector = (code.astype(wide) * wide.type(scale)).astype(x.dtype)
        return total


def _wide(dtype: np.dtype[Any], scale: float) -> np.dtype[Any]:
    """Return the dtype in which to scale: one that holds the scale and all quotients in full."""
    narrow = dtype.itemsize <= 4 and _LEAST_IN_FLOAT32 < scale < 1 / _LEAST_IN_FLOAT32
    return np.dtype(np.float32 if narrow else np.float64)
