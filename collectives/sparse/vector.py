# SPDX-License-Identifier: Apache-2.0
"""The type of a sparse vector."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from collectives.arrays import DTYPES, NAMES, Array, Operand, operand
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.gpu_arrays import anywhere
from collectives.names import integer

if TYPE_CHECKING:
    import numpy.typing as npt

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
INDEX_DTYPES = frozenset(DTYPES[name] for name in _INTEGERS)
MOST_ELEMENTS = 1 << 48


class Sparse:
    """A vector of ``length`` elements, given by those that are not zero.

    ``values[i]`` is the element at ``indices[i]``; all others are zero. Both are one-dimensional,
    NumPy arrays, tensors or anything else that collectives take, and are kept as they are: nothing
    is copied. Indices are integers of 8, 16, 32 or 64 bits, in any order; the values of an index
    that comes several times add up. Values are floats (bfloat16, float16 and float8 too), integers,
    complex numbers or bool. A value that is given and zero travels as any other; of what ranks have
    given, an element whose result is zero may be among those of the result or not, alike on all
    ranks (docs/sparse.md).

    Raises InvalidArgumentError for arrays of other shapes or dtypes, or a length that is no integer
    from 0 to 2^48. Indices are compared with the length where the vector is used.

    Attributes:
        indices: As given; of results, int32 or int64, ascending.
        values: As given; of results, tensors if they were tensors, else NumPy arrays.
        length: Elements of the vector, zeros among them.
        nnz: How many values are given.
    """

    __slots__ = ("indices", "length", "nnz", "values")

    def __init__(self, indices: Array, values: Array, length: SupportsIndex) -> None:
        """Keep both arrays."""
        elements = integer(length)
        if elements is None or not 0 <= elements <= MOST_ELEMENTS:
            raise InvalidArgumentError(
                f"Sparse: the length is {length!r}: give the elements of the vector, 0 to 2^48"
            )
        self.indices, self.values, self.length = indices, values, elements
        places, _ = self.operands("Sparse")
        self.nnz: int = places.elements

    @classmethod
    def of_result(cls, indices: Any, values: Any, length: int) -> Sparse:
        """Return a vector of arrays that need no checks; for the library itself."""
        made = cls.__new__(cls)
        made.indices, made.values, made.length = indices, values, length
        made.nnz = len(indices)
        return made

    @classmethod
    def from_dense(cls, x: Array) -> Sparse:
        """Return the elements of an array or tensor that are not zero, in C order.

        Both of its arrays are new. Raises InvalidArgumentError for what collectives do not take.
        """
        flat = operand(x, "Sparse.from_dense: x").array.reshape(-1)
        if not isinstance(flat, np.ndarray):
            found = flat.nonzero().reshape(-1)
            return cls(found, flat[found], len(flat))
        wide = flat.size > np.iinfo(np.int32).max
        places = np.flatnonzero(flat).astype(np.int64 if wide else np.int32)
        return cls(places, flat[places], flat.size)

    @property
    def dtype(self) -> Any:
        """Of the values: as their array has it."""
        values = anywhere(self.values, "Sparse: values")
        return values.array.dtype if hasattr(values.array, "dtype") else NAMES[values.dtype]

    @property
    def device(self) -> int:
        """The GPU that it is on; -1: it is in memory of the host."""
        return anywhere(self.values, "Sparse: values").device

    @property
    def density(self) -> float:
        """Share of the elements that are given; 0 of no elements."""
        return self.nnz / self.length if self.length else 0.0

    def dense(self) -> Array:
        """Return a new array of all elements, a tensor if the values are one.

        Raises InvalidArgumentError where an index is none of the vector.
        """
        places, values = self.operands("Sparse.dense")
        if places.device >= 0:
            raise UnsupportedError('Sparse.dense: it is on a GPU: allreduce(x, output="dense")')
        index = np.asarray(places.array)
        if wrong := [i for i in _ends(index) if not 0 <= i < self.length]:
            raise InvalidArgumentError(
                f"Sparse.dense: index {wrong[0]} is none of a vector of {self.length} elements"
            )
        index = index.astype(np.int64)
        if not isinstance(values.array, np.ndarray):
            found = sys.modules["torch"].from_numpy(index)
            whole = values.array.new_zeros(self.length)
            return whole.index_put_((found,), values.array, accumulate=True)
        total = np.zeros(self.length, values.array.dtype)
        add: Any = np.logical_or if total.dtype == np.bool_ else np.add
        add.at(total, index, values.array)
        return total

    def operands(self, what: str) -> tuple[Operand, Operand]:
        """Return indices and values as the native layer sees them; for the library itself."""
        places = anywhere(self.indices, f"{what}: indices")
        values = anywhere(self.values, f"{what}: values")
        if places.device != values.device:
            raise InvalidArgumentError(f"{what}: indices and values are in memories of two kinds")
        for name, array in (("indices", places), ("values", values)):
            if len(array.shape) != 1:
                raise InvalidArgumentError(
                    f"{what}: the {name} have {len(array.shape)} dimensions: pass one"
                )
        if places.dtype not in INDEX_DTYPES:
            raise InvalidArgumentError(
                f"{what}: the indices are {NAMES[places.dtype]}: pass integers"
            )
        if places.elements != values.elements:
            raise InvalidArgumentError(
                f"{what}: {places.elements} indices, but {values.elements} values"
            )
        return places, values

    def __repr__(self) -> str:
        """Return its size in words."""
        return f"Sparse({self.nnz} of {self.length} elements, {self.dtype})"


def _ends(index: npt.NDArray[Any]) -> list[int]:
    """Return the least and the largest index."""
    return [int(index.min()), int(index.max())] if index.size else []
