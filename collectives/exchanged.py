# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch whose memory is exchanged while a persistent call is bound to it.

``x.data = other``, ``x.set_()``, ``x.resize_()`` and ``x.untyped_storage().resize_()`` leave the
tensor and free what it had, which NumPy refuses for arrays that somebody looks into.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from collectives.arrays import Operand
from collectives.errors import InvalidArgumentError


class Watched(NamedTuple):
    """A tensor, and where its memory was when a call was bound to it."""

    tensor: Any
    address: int


def watched(*sides: Operand | None) -> tuple[Watched, ...]:
    """Return those of a call's arrays that are torch's."""
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", ())
    found = (side.origin for side in sides if side is not None and isinstance(side.origin, tensor))
    return tuple(Watched(one, one.data_ptr()) for one in found)


def refuse_exchanged(name: str, tensors: tuple[Watched, ...]) -> None:
    """Raise InvalidArgumentError where one of them has other memory than it had."""
    for one in tensors:
        if one.tensor.data_ptr() != one.address:
            raise InvalidArgumentError(
                f"{name}: the memory of a tensor was exchanged (by .data, set_() or resize_()) "
                "since this persistent call was made: make a new one"
            )
