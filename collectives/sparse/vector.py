# SPDX-License-Identifier: Apache-2.0
"""The type of a sparse vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from collectives.arrays import NAMES, Operand, operand
from collectives.errors import InvalidArgumentError

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


class Sparse:
    """A vector of ``length`` elements, given by those that are not zero.

    ``values[i]`` is the element at ``indices[i]``; all others are zero. Both are one-dimensional,
    NumPy arrays or anything else that collectives take, and are kept as they are: nothing is
    copied. Indices are integers of 16, 32 or 64 bits, in any order; the values of an index that
    comes several times add up. Values are floats (bfloat16, float16 and float8 too), integers,
    complex numbers or bool.

    Raises InvalidArgumentError for arrays of other shapes or dtypes, or a negative length. Indices
    are compared with the length where the vector is used.

    Attributes:
        indices: As given; of results, int32 or int64, ascending.
        values: As given.
        length: Elements of the vector, zeros among them.
    """

    __slots__ = ("indices", "length", "values")

    def __init__(self, indices: Any, values: Any, length: int) -> None:
        """Keep both arrays."""
        self.indices, self.values, self.length = indices, values, int(length)
        if self.length < 0:
            raise InvalidArgumentError(f"Sparse: the length {length} is negative")
        places, _ = self.operands("Sparse")
        if NAMES[places.dtype] not in _INTEGERS:
            raise InvalidArgumentError(
                f"Sparse: the indices are {NAMES[places.dtype]}: pass integers"
            )

    @classmethod
    def from_dense(cls, x: npt.ArrayLike) -> Sparse:
        """Return the elements of an array that are not zero, in C order."""
        flat = np.ascontiguousarray(x).reshape(-1)
        wide = flat.size > np.iinfo(np.int32).max
        places = np.flatnonzero(flat).astype(np.int64 if wide else np.int32)
        return cls(places, flat[places], flat.size)

    @property
    def dtype(self) -> Any:
        """Of the values: as the array has it."""
        return self.values.dtype

    @property
    def nnz(self) -> int:
        """How many values are given."""
        return int(self.indices.shape[0])

    @property
    def density(self) -> float:
        """Share of the elements that are given; 0 of no elements."""
        return self.nnz / self.length if self.length else 0.0

    def dense(self) -> npt.NDArray[Any]:
        """Return a new array of all elements."""
        values, places = np.asarray(self.values), np.asarray(self.indices)
        whole = np.zeros(self.length, values.dtype)
        if values.dtype == np.bool_:
            np.logical_or.at(whole, places, values)
        else:
            np.add.at(whole, places, values)
        return whole

    def operands(self, what: str) -> tuple[Operand, Operand]:
        """Return indices and values as the native layer sees them; for the library itself."""
        places = operand(self.indices, f"{what}: indices")
        values = operand(self.values, f"{what}: values")
        for name, array in (("indices", places), ("values", values)):
            if len(array.shape) != 1:
                raise InvalidArgumentError(
                    f"{what}: the {name} have {len(array.shape)} dimensions: pass one"
                )
        if places.elements != values.elements:
            raise InvalidArgumentError(
                f"{what}: {places.elements} indices, but {values.elements} values"
            )
        return places, values

    def __repr__(self) -> str:
        """Return its size in words."""
        return f"Sparse({self.nnz} of {self.length} elements, {self.dtype})"
