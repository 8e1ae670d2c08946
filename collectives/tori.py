# SPDX-License-Identifier: Apache-2.0
"""Ranks on a grid whose rows and columns are rings: :func:`torus`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from collectives.errors import InvalidArgumentError
from collectives.names import integer
from collectives.products import Product, product

_MOST_RANKS = 4096  # of a product


def torus(
    *sides: int,
    kind: str = "allreduce",
    phases: str | Sequence[str] = "ring",
    both_ways: bool | None = None,
    name: str = "torus",
) -> Product:
    """Make a :func:`product` of the sides of a torus: ``torus(4, 8)`` has 4 rows of 8 ranks.

    Args:
        sides: how many ranks along each: rows, columns, or more. Ranks are numbered along the last
            side first: rank 8 begins the second row.
        kind: allreduce, reduce_scatter or allgather; also broadcast, reduce and barrier, with
            phases "direct" or "binomial".
        phases: how ranks along a side talk: a word for each side, in the order of the sides, or
            one for all, as in :func:`product`. "ring" uses no links but those of a torus.
        both_ways: rows first for one half of the vector and columns first for the other, so that
            the links of both are busy at all times. By default an allreduce does, of two or more
            sides; others cannot.
        name: what ``algorithm=`` calls it.

    Raises InvalidArgumentError or UnsupportedError where sides, kind and phases do not fit.
    """
    lengths = [integer(side) for side in sides]
    if not sides or any(length is None or length < 1 for length in lengths):
        raise InvalidArgumentError(
            f"torus: the sides are {sides!r}: give one or more numbers of ranks, such as 4, 8"
        )
    if math.prod(length for length in lengths if length is not None) > _MOST_RANKS:
        raise InvalidArgumentError(f"torus: a schedule is for 1 to {_MOST_RANKS} ranks")
    if both_ways is None:
        both_ways = kind == "allreduce" and len(sides) > 1
    if not isinstance(phases, str):
        phases = list(phases)[::-1]
    levels = _grid([length for length in lengths if length is not None], 0)
    return product(kind, levels, phases, name=name, both_ways=both_ways)


def _grid(sides: Sequence[int], first: int) -> list[Any]:
    """Return the ranks from the first one on, in a list of lists for each side but the last."""
    if len(sides) == 1:
        return list(range(first, first + sides[0]))
    size = 1
    for side in sides[1:]:
        size *= side
    return [_grid(sides[1:], first + i * size) for i in range(sides[0])]
