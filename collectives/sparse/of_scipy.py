# SPDX-License-Identifier: Apache-2.0
"""From and to the sparse arrays and matrices of SciPy."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from collectives.errors import InvalidArgumentError
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


def of_scipy(x: Any, what: str) -> Converted:
    """Return a csr, csc or coo array or matrix as a vector."""
    form, make = x.format, type(x)
    if form not in ("csr", "csc", "coo"):
        raise InvalidArgumentError(
            f"{what} is a SciPy {form} array: csr, csc and coo are taken, as x.tocsr() gives them"
        )
    shape = tuple(int(side) for side in x.shape)
    order: Any = "F" if form == "csc" else "C"
    places, values = _coordinates(x, what) if form == "coo" else _compressed(x, what)

    def back(found: Sparse, whole: Shape) -> Any:
        sides = whole[::-1] if form == "csc" else whole
        coordinates = coordinates_of(found.indices, sides)
        if form == "coo":
            made = make((found.values, tuple(coordinates)), whole)
            made.has_canonical_format = True
            return made
        rows, inner = coordinates if len(sides) > 1 else (np.zeros(found.nnz, int), coordinates[0])
        ends = row_ends(rows, sides[0] if len(sides) > 1 else 1)
        return make((found.values, inner, ends), whole)

    return Converted(
        vector=Sparse(places, values, prod(shape)),
        agreed=words_of(form, shape),
        shape=shape,
        back=back,
        back_dense=lambda values, whole: values.reshape(whole, order=order),
        by_rows=form != "csc",
    )


def _coordinates(x: Any, what: str) -> tuple[Any, Any]:
    coords = getattr(x, "coords", None) or (x.row, x.col)
    return (coords[0] if len(x.shape) == 1 else flat_places(what, coords, x.shape)), x.data


def _compressed(x: Any, what: str) -> tuple[Any, Any]:
    """Return indices and values of a csr or csc array: its columns are the rows of what it is of.

    Its arrays may have more room than entries.
    """
    sides = x.shape[::-1] if x.format == "csc" else x.shape
    rows = sides[0] if len(sides) > 1 else 1
    ends = checked_ends(what, x.indptr, rows, min(len(x.indices), len(x.data)), room=True)
    inner, values = x.indices[: ends[-1]], x.data[: ends[-1]]
    if rows == 1:  # one row is its own vector
        return inner, values
    row = np.repeat(np.arange(rows), np.diff(ends))
    return flat_places(what, (row, inner), sides), values
