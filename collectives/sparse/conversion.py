# SPDX-License-Identifier: Apache-2.0
"""From and to sparse arrays of any kind.

A matrix is a vector of its rows, one after another; of csc, of its columns. Where the parts of an
array are the indices and values of that vector, as in a csr of one row, they are used as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from collectives.arrays import NAMES, numpy_dtype, operand
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.sparse.on_gpu import is_on_gpu, of_cupyx
from collectives.sparse.vector import MOST_ELEMENTS, Sparse

Shape: TypeAlias = tuple[int, ...]


class Converted(NamedTuple):
    """A sparse array as a vector, and the way back for results, whose shapes may be others."""

    vector: Sparse
    agreed: str  # what all ranks must say of it
    shape: Shape
    back: Callable[[Sparse, Shape], Any]
    back_dense: Callable[[Any, Shape], Any]  # from all values, as a NumPy array
    by_rows: bool = True  # parts of the vector are rows of the array


def is_sparse(x: Any) -> bool:
    """Whether collectives treat ``x`` as sparse. Neither SciPy nor torch is imported for it."""
    if type(x) is np.ndarray:
        return False
    if type(x) is Sparse:
        return True
    torch = sys.modules.get("torch")
    tensors: Any = getattr(torch, "Tensor", ())
    if torch is not None and isinstance(x, tensors):
        return str(x.layout).startswith("torch.sparse")
    if of_cupyx(x):
        return True
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and bool(scipy.issparse(x))


def converted(x: Any, what: str) -> Converted:
    """Return any sparse array as a vector; ``what`` opens the sentence of an error."""
    torch = sys.modules.get("torch")
    if is_on_gpu(x):
        raise UnsupportedError(
            f"{what} is a sparse array on a GPU, which has allreduce only so far"
        )
    if isinstance(x, Sparse):
        return _of_vector(x)
    if torch is not None and isinstance(x, torch.Tensor):
        from collectives.sparse.of_torch import of_tensor  # for those who use it

        return of_tensor(torch, x, what)
    from collectives.sparse.of_scipy import of_scipy

    return of_scipy(x, what)


def _of_vector(x: Sparse) -> Converted:
    shape = (x.length,)
    values = operand(x.values, "Sparse: values").array
    if isinstance(values, np.ndarray):
        return Converted(x, "", shape, lambda found, _: found, lambda found, _: found)
    from collectives.sparse.of_torch import tensor_of

    torch, dtype = sys.modules["torch"], values.dtype

    def back(found: Sparse, _: Shape) -> Sparse:
        places = torch.from_numpy(found.indices)
        return Sparse(places, tensor_of(torch, found.values, dtype), found.length)

    return Converted(x, "", shape, back, lambda found, _: tensor_of(torch, found, dtype))


def flat_places(what: str, coordinates: Sequence[Any], sides: Shape) -> Any:
    """Return the indices, in C order, of elements whose coordinates these are: NumPy arrays.

    Raises InvalidArgumentError for a coordinate that is not within its side, or too many elements.
    """
    elements = prod(max(side, 1) for side in sides)
    if elements > MOST_ELEMENTS:
        raise InvalidArgumentError(f"{what} of shape {sides} has more than 2^48 elements")
    wide = np.int64 if elements > np.iinfo(np.int32).max else np.int32
    places: Any = np.zeros(len(coordinates[0]), wide)
    for axis, (coordinate, side) in enumerate(zip(coordinates, sides, strict=True)):
        if len(coordinate) != len(places):
            raise InvalidArgumentError(
                f"{what} has {len(places)} coordinates along its first axis, {len(coordinate)} "
                f"along axis {axis}"
            )
        if len(coordinate) and (coordinate.min() < 0 or coordinate.max() >= side):
            raise InvalidArgumentError(
                f"{what} has an element outside of its shape {sides}, along axis {axis}"
            )
        places *= side
        places += coordinate.astype(wide, copy=False)
    return places


def coordinates_of(indices: Any, sides: Shape) -> list[Any]:
    """Return the coordinates of elements of these indices, in C order."""
    found: list[Any] = []
    rest = np.asarray(indices)
    for side in reversed(sides[1:]):
        rest, coordinate = np.divmod(rest, max(side, 1))
        found.append(coordinate)
    return [rest, *reversed(found)]


def row_ends(rows: Any, count: int) -> Any:
    """Return where the entries of each of ``count`` rows end, with a 0 in front."""
    ends = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=ends[1:])
    return ends


def checked_ends(what: str, ends: Any, rows: int, entries: int, *, room: bool = False) -> Any:
    """Return the ends of the rows of a compressed matrix, which ascend from 0 to its entries.

    ``room``: its arrays may have more room than entries.
    """
    sound = len(ends) == rows + 1 and ends[0] == 0
    sound = sound and (ends[-1] <= entries if room else ends[-1] == entries)
    if not sound or (ends[1:] < ends[:-1]).any():
        raise InvalidArgumentError(
            f"{what} has ends of rows that are none of its {rows} rows with {entries} entries: "
            f"pass {rows + 1} numbers that ascend from 0 to {'at most ' if room else ''}{entries}"
        )
    return ends


def words_of(form: str, shape: Shape) -> str:
    """Return what all ranks must say of an array of this format."""
    return f"{form} {' x '.join(map(str, shape))}"


_dtypes: dict[int, np.dtype[Any]] = {}


def result_dtype(code: int) -> np.dtype[Any]:
    """Return the NumPy dtype of results; integers of its size where NumPy has none."""
    known = _dtypes.get(code)
    if known is not None:
        return known
    try:
        return _dtypes.setdefault(code, numpy_dtype(code))
    except InvalidArgumentError:  # tensors need no ml_dtypes
        return np.dtype(np.uint16 if NAMES[code] == "bfloat16" else np.uint8)
