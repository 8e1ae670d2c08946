# SPDX-License-Identifier: Apache-2.0
"""From and to the sparse arrays of SciPy and torch.

A matrix is a vector of its rows, one after another; of csc, of its columns. Where the parts of an
array are the indices and values of that vector, as in a csr of one row, they are used as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from collectives.errors import InvalidArgumentError
from collectives.sparse.vector import Sparse


class Converted(NamedTuple):
    """A sparse array as a vector, and the way back."""

    vector: Sparse
    agreed: str  # what all ranks must say of it
    back: Callable[[Sparse], Any]  # from a vector of as many elements
    back_dense: Callable[[Any], Any]  # from all its values


def is_sparse(x: Any) -> bool:
    """Whether collectives treat ``x`` as sparse. Neither SciPy nor torch is imported for it."""
    if isinstance(x, Sparse):
        return True
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, getattr(torch, "Tensor", ())):
        return bool(x.layout in (torch.sparse_coo, torch.sparse_csr))
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and bool(scipy.issparse(x))


def converted(x: Any, what: str) -> Converted:
    """Return any sparse array as a vector; ``what`` opens the sentence of an error."""
    if isinstance(x, Sparse):
        return Converted(x, "", lambda vector: vector, lambda values: values)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        return _of_tensor(torch, x, what)
    return _of_scipy(x, what)


def _wide(elements: int) -> type:
    return np.int64 if elements > np.iinfo(np.int32).max else np.int32


def _of_scipy(x: Any, what: str) -> Converted:
    form = x.format
    if form not in ("csr", "csc", "coo"):
        raise InvalidArgumentError(
            f"{what} is a SciPy {form} array: csr, csc and coo are taken, as x.tocsr() gives them"
        )
    shape = tuple(int(side) for side in x.shape)
    sides = shape[::-1] if form == "csc" else shape
    vector = Sparse(_scipy_places(x, form, sides), x.data, prod(shape))
    make, order = type(x), "F" if form == "csc" else "C"

    def back(result: Sparse) -> Any:
        places = np.unravel_index(np.asarray(result.indices), sides)
        if form == "coo":
            return make((np.asarray(result.values), places), shape)
        if len(sides) == 1:
            return make((np.asarray(result.values), places[0], [0, result.nnz]), shape)
        ends = np.zeros(sides[0] + 1, np.int64)
        np.cumsum(np.bincount(places[0], minlength=sides[0]), out=ends[1:])
        return make((np.asarray(result.values), places[1], ends), shape)

    words = f"{form} {' x '.join(map(str, shape))}"
    return Converted(vector, words, back, lambda v: np.asarray(v).reshape(shape, order=order))


def _scipy_places(x: Any, form: str, sides: tuple[int, ...]) -> Any:
    if form == "coo":
        coords = getattr(x, "coords", None) or (x.row, x.col)
        return coords[0] if len(sides) == 1 else _flat(coords, sides)
    if len(sides) == 1 or sides[0] == 1:  # one row is its own vector
        return x.indices
    rows = np.repeat(np.arange(sides[0]), np.diff(x.indptr))
    return _flat((rows, x.indices), sides)


def _flat(coords: Any, sides: tuple[int, ...]) -> Any:
    places = np.zeros(len(coords[0]), _wide(prod(sides)))
    for coordinate, side in zip(coords, sides, strict=True):
        places *= side
        places += np.asarray(coordinate).astype(places.dtype, copy=False)
    return places


def _of_tensor(torch: Any, x: Any, what: str) -> Converted:
    if not x.is_cpu:
        raise InvalidArgumentError(f"{what} is a tensor on {x.device}: pass one in CPU memory")
    if x.requires_grad:
        raise InvalidArgumentError(f"{what} requires a gradient: pass x.detach()")
    shape = tuple(x.shape)
    words = f"torch {str(x.layout).removeprefix('torch.')} {' x '.join(map(str, shape))}"
    if x.layout is torch.sparse_csr:
        return _of_csr(torch, x, shape, words)
    inner = shape[x.sparse_dim() :]
    places, values = x._indices(), x._values()  # of what need not be coalesced
    flat = places[0] if x.sparse_dim() else places.new_zeros(values.shape[0])
    for axis in range(1, x.sparse_dim()):
        flat = flat * shape[axis] + places[axis]
    if inner:  # each entry is a block of values
        block = prod(inner)
        flat = (flat[:, None] * block + torch.arange(block)).reshape(-1)
    vector = Sparse(flat, values.reshape(-1).contiguous(), prod(shape))

    def back(result: Sparse) -> Any:
        coords = np.stack(np.unravel_index(np.asarray(result.indices), shape))
        made = torch.sparse_coo_tensor(
            torch.from_numpy(coords), tensor_of(torch, result.values, x.dtype), shape,
            check_invariants=False,
        )  # fmt: skip
        return made._coalesced_(True)

    dense = lambda v: tensor_of(torch, v, x.dtype).reshape(shape)  # noqa: E731
    return Converted(vector, words, back, dense)


def _of_csr(torch: Any, x: Any, shape: tuple[int, ...], words: str) -> Converted:
    if len(shape) != 2:
        raise InvalidArgumentError("a csr tensor of batches is not taken: pass one by one")
    ends, columns = x.crow_indices(), x.col_indices()
    if shape[0] == 1:
        flat = columns
    else:
        rows = torch.repeat_interleave(torch.arange(shape[0]), ends.diff())
        flat = rows * shape[1] + columns
    vector = Sparse(flat, x.values(), prod(shape))

    def back(result: Sparse) -> Any:
        rows, places = np.unravel_index(np.asarray(result.indices), shape)
        counts = np.zeros(shape[0] + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=shape[0]), out=counts[1:])
        return torch.sparse_csr_tensor(
            torch.from_numpy(counts), torch.from_numpy(places),
            tensor_of(torch, result.values, x.dtype), shape,
        )  # fmt: skip

    dense = lambda v: tensor_of(torch, v, x.dtype).reshape(shape)  # noqa: E731
    return Converted(vector, words, back, dense)


def tensor_of(torch: Any, values: Any, dtype: Any) -> Any:
    """Return a tensor that shares the memory of a NumPy array, whose dtype NumPy may not know."""
    array = np.asarray(values)
    try:
        tensor = torch.from_numpy(array)
    except TypeError:  # a dtype of ml_dtypes
        tensor = torch.from_numpy(array.view(f"i{array.dtype.itemsize}"))
    return tensor if tensor.dtype is dtype else tensor.view(dtype)
