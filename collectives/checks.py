# SPDX-License-Identifier: Apache-2.0
"""What a call checks about its arguments before anything is sent.

The native layer checks, too: what numbers and addresses tell (overlap of x and out, averages of
integers). Here is what only Python sees.
"""

from __future__ import annotations

from collections.abc import Sequence

from collectives.arrays import NAMES, Array, Operand, fresh, output
from collectives.errors import InvalidArgumentError
from collectives.names import integer

Shape = tuple[int, ...]


def checked_root(call: str, root: int, size: int) -> int:
    """Return ``root`` when it is a rank."""
    rank = integer(root)
    if rank is None or not 0 <= rank < size:
        raise InvalidArgumentError(f"{call}: root is {root!r}: give a rank from 0 to {size - 1}")
    return rank


def checked_counts(counts: Sequence[int], size: int) -> list[int]:
    """Return the lengths of all ranks' parts, one per rank, none negative."""
    try:
        given = [integer(n) for n in counts]
    except TypeError:  # not a sequence
        given = []
    lengths = [n for n in given if n is not None and n >= 0]
    if not len(lengths) == len(given) == size:
        raise InvalidArgumentError(
            f"allgatherv: counts is {counts!r}: give {size} lengths, one for each rank"
        )
    return lengths


def in_place_target(call: str, source: Operand, out: Array | None) -> Operand:
    """Return where the result of a call goes whose result is as large as its input."""
    if out is None:
        return source if source.writable else fresh(source, source.shape)
    return _given(call, source, out, [source.shape])


def apart_target(call: str, source: Operand, out: Array | None, shapes: Sequence[Shape]) -> Operand:
    """Return where the result of a call goes whose result is larger or smaller than its input.

    ``shapes`` are those that ``out`` may have; a new array gets the first.
    """
    return fresh(source, shapes[0]) if out is None else _given(call, source, out, shapes)


def _given(call: str, source: Operand, out: Array, shapes: Sequence[Shape]) -> Operand:
    target = output(out, f"{call}: out")
    if target.dtype != source.dtype:
        raise InvalidArgumentError(
            f"{call}: out has dtype {NAMES[target.dtype]}, but x has {NAMES[source.dtype]}"
        )
    if target.shape not in shapes:
        wanted = " or ".join(str(shape) for shape in shapes)
        raise InvalidArgumentError(
            f"{call}: out has shape {target.shape}, but x of shape {source.shape} "
            f"needs shape {wanted}"
        )
    return target
