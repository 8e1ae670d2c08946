# SPDX-License-Identifier: Apache-2.0
"""From and to the sparse tensors of torch. Whoever passes one has imported it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.sparse.conversion import (
    Converted,
    Shape,
    checked_ends,
    coordinates_of,
    flat_places,
    row_ends,
    words_of,
)
from collectives.sparse.vector import Sparse


def of_tensor(torch: Any, x: Any, what: str) -> Converted:
    """Return a sparse_coo or sparse_csr tensor, coalesced or not, as a vector."""
    if not x.is_cpu:
        raise UnsupportedError(
            f"{what} is a tensor on {x.device}: this build serves CPU memory only; pass x.cpu()"
        )
    if x.requires_grad and torch.is_grad_enabled():
        raise InvalidArgumentError(
            f"{what} requires grad, and collectives are not differentiable: "
            "pass x.detach(), or call it under torch.no_grad()"
        )
    if x.layout is torch.sparse_coo:
        return _of_coo(torch, x.detach(), what)
    if x.layout is torch.sparse_csr and len(x.shape) == 2:
        return _of_csr(torch, x.detach(), what)
    raise InvalidArgumentError(
        f"{what} is a {x.layout} tensor of {len(x.shape)} dimensions: sparse_coo and matrices of "
        "sparse_csr are taken, as x.to_sparse_coo() gives them"
    )


def _of_coo(torch: Any, x: Any, what: str) -> Converted:
    """Each entry of a tensor with dense dimensions is a block of values."""
    shape, outer = tuple(x.shape), x.sparse_dim()
    block = prod(shape[outer:])
    places, values = x._indices(), x._values()  # of what need not be coalesced
    if outer == 0:
        flat = torch.zeros(values.shape[0], dtype=torch.int64)
    elif outer == 1:
        flat = places[0]
    else:
        flat = torch.from_numpy(flat_places(what, places.numpy(), shape[:outer]))
    if len(shape) > outer:
        flat = (flat[:, None].long() * block + torch.arange(block)).reshape(-1)

    def back(found: Sparse, whole: Shape) -> Any:
        rows, filled = np.asarray(found.indices), tensor_of(torch, found.values, x.dtype)
        if len(shape) > outer:
            rows, filled = _blocks(torch, rows, filled, whole[outer:])
        coordinates = coordinates_of(rows, whole[:outer]) if outer else []
        stacked = np.array(coordinates, np.int64).reshape(outer, len(rows))
        made = torch.sparse_coo_tensor(
            torch.from_numpy(stacked), filled, whole, check_invariants=False
        )
        return made._coalesced_(True)

    return Converted(
        vector=Sparse(flat, values.reshape(-1), prod(shape)),
        agreed=words_of("torch sparse_coo", shape),
        shape=shape,
        back=back,
        back_dense=lambda found, whole: tensor_of(torch, found, x.dtype).reshape(whole),
    )


def _blocks(torch: Any, places: Any, values: Any, sides: Shape) -> tuple[Any, Any]:
    """Return the rows in which there is a value, ascending, and a block of values for each."""
    block = max(prod(sides), 1)
    rows, within = np.divmod(places, block)
    first = np.diff(rows, prepend=-1) != 0
    count = int(first.sum())
    blocks = values.new_zeros((count, block))
    blocks[torch.from_numpy(np.cumsum(first) - 1), torch.from_numpy(within.astype(np.int64))] = (
        values
    )
    return rows[first], blocks.reshape(count, *sides)


def _of_csr(torch: Any, x: Any, what: str) -> Converted:
    shape, inner, values = tuple(x.shape), x.col_indices(), x.values()
    kind = inner.dtype
    ends = checked_ends(what, x.crow_indices().numpy(), shape[0], len(inner))
    places = inner
    if shape[0] != 1:  # one row is its own vector
        rows = np.repeat(np.arange(shape[0]), np.diff(ends))
        places = torch.from_numpy(flat_places(what, (rows, inner.numpy()), shape))

    def back(found: Sparse, whole: Shape) -> Any:
        rows, columns = coordinates_of(found.indices, whole)
        return torch.sparse_csr_tensor(
            torch.from_numpy(row_ends(rows, whole[0])).to(kind),
            torch.from_numpy(columns).to(kind),
            tensor_of(torch, found.values, x.dtype),
            whole,
            check_invariants=False,
        )

    return Converted(
        vector=Sparse(places, values, prod(shape)),
        agreed=words_of("torch sparse_csr", shape),
        shape=shape,
        back=back,
        back_dense=lambda found, whole: tensor_of(torch, found, x.dtype).reshape(whole),
    )


def tensor_of(torch: Any, values: Any, dtype: Any) -> Any:
    """Return a tensor that shares the memory of a NumPy array, whose dtype NumPy may not know."""
    array = np.asarray(values)
    try:
        tensor = torch.from_numpy(array)
    except TypeError:  # a dtype of ml_dtypes
        tensor = torch.from_numpy(array.view(f"i{array.dtype.itemsize}"))
    return tensor if tensor.dtype is dtype else tensor.view(dtype)
