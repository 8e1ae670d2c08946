# SPDX-License-Identifier: Apache-2.0
"""The elements of a dense vector that are largest in magnitude, as a sparse vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectives._ffi import check, ffi, lib
from collectives.arrays import NAMES, Operand, numpy_dtype, operand
from collectives.errors import InvalidArgumentError
from collectives.names import integer, real
from collectives.sparse.vector import Sparse

_TAKEN = ("float32", "float64", "bfloat16", "float16")


def top_k(x: Any, k: int) -> Sparse:
    """Return the ``k`` elements of ``x``, in C order, that are largest in magnitude.

    Exactly: NaNs are the largest of all, before infinities, so that none is lost before any number
    is; of elements of equal magnitude those with the lowest indices are taken. Zeros are among them
    where there are not ``k`` others. Indices ascend: int32, or int64 of a vector of 2^31 elements
    or more.

    Args:
        x: An array of any shape, float32, float64, bfloat16 or float16.
        k: How many: 0 to the number of elements.

    Raises:
        InvalidArgumentError: Another dtype, or another k.
    """
    given = _floats(x, "top_k")
    wanted = integer(k)
    if wanted is None or not 0 <= wanted <= given.elements:
        raise InvalidArgumentError(f"top_k: k = {k} of {given.elements} elements: pass 0 to that")
    indices, values, to_indices, to_values = _room(given, wanted)
    check(
        lib.coll_top_k(
            given.pointer,
            given.dtype,
            given.elements,
            wanted,
            indices.itemsize,
            to_indices,
            to_values,
        )
    )
    return Sparse(indices, values, given.elements)


def select_above(x: Any, threshold: float, room: int | None = None) -> Sparse:
    """Return the elements of ``x``, in C order, whose magnitude is ``threshold`` or more, and NaNs.

    Args:
        x: As :func:`top_k`.
        threshold: 0 or more.
        room: For how many elements memory is taken at first, which saves a second look at ``x``
            where there are no more; a tenth of all by default.

    Raises:
        InvalidArgumentError: Another dtype, a negative threshold or room, or NaN.
    """
    given = _floats(x, "select_above")
    least = real(threshold)
    if not least >= 0:
        raise InvalidArgumentError(f"select_above: the threshold is {threshold}: pass 0 or more")
    some = given.elements // 10 + 16 if room is None else integer(room)
    if some is None or some < 0:
        raise InvalidArgumentError(f"select_above: room for {room} elements: pass 0 or more")
    found = ffi.new("uint64_t *")
    while True:
        some = min(some, given.elements)
        indices, values, to_indices, to_values = _room(given, some)
        check(
            lib.coll_select_above(
                given.pointer, given.dtype, given.elements, least, indices.itemsize, some,
                to_indices, to_values, found,
            )
        )  # fmt: skip
        count = int(found[0])
        if count <= some:
            return Sparse(indices[:count], values[:count], given.elements)
        some = count


def _floats(x: Any, what: str) -> Operand:
    given = operand(x, f"{what}: x")
    if NAMES[given.dtype] not in _TAKEN:
        raise InvalidArgumentError(
            f"{what}: x is {NAMES[given.dtype]}: pass one of {', '.join(_TAKEN)}"
        )
    return given


def _room(given: Operand, n: int) -> tuple[Any, Any, Any, Any]:
    """Return new arrays of indices and of values, and pointers to both."""
    wide = given.elements > np.iinfo(np.int32).max
    indices = np.empty(n, np.int64 if wide else np.int32)
    values = np.empty(n, numpy_dtype(given.dtype))
    opaque = values.view(f"i{values.itemsize}")  # bfloat16 has no buffer
    return indices, values, ffi.from_buffer("char[]", indices), ffi.from_buffer("char[]", opaque)
