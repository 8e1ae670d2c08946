# SPDX-License-Identifier: Apache-2.0
"""What a call checks about its arguments before anything is sent.

The native layer checks, too: what numbers and addresses tell (overlap of x and out, averages of
integers). Here is what only Python sees.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from collectives import gpu_arrays
from collectives._ffi import ffi
from collectives.arrays import NAMES, Array, Operand, itemsize, output, refuse_repeats
from collectives.errors import InvalidArgumentError
from collectives.gpu_arrays import anywhere, fresh
from collectives.lengths import UNKNOWN
from collectives.names import integer

Shape = tuple[int, ...]


def checked_counts(what: str, counts: object, size: int) -> list[int]:
    """Return the lengths of all ranks' parts, one per rank, none negative.

    ``what`` opens the sentence of an error ("allgatherv: counts").
    """
    lengths = _lengths(counts, size)
    if lengths is None:
        wrong = _no_length(counts, size)
        why = "" if wrong is None else f"{wrong} is no length: "
        wanted = "" if wrong is None else f", integers from 0 to {sys.maxsize}"
        raise InvalidArgumentError(
            f"{what} is {counts!r}: {why}give {size} lengths, one for each rank{wanted}"
        )
    return lengths


def checked_table(what: str, counts: object, size: int) -> list[list[int]] | None:
    """Return the lengths of all blocks, ``[sender][receiver]``; None where it is one row only."""
    try:
        rows = list(counts)  # type: ignore[call-overload]
    except TypeError:  # not a sequence
        rows = []
    if any(integer(row) is not None for row in rows):
        return None
    table = [_lengths(row, size) for row in rows]
    whole = [row for row in table if row is not None]
    if not len(whole) == len(table) == size:
        found = (_no_length(row, size) if _iterable(row) else repr(row) for row in rows)
        wrong = next((value for value in found if value is not None), None)
        why = "" if wrong is None else f"{wrong} is no length: "
        raise InvalidArgumentError(
            f"{what} is {counts!r}: {why}give {size} lengths, one for each rank, or those of all "
            f"ranks, {size} rows of {size}"
        )
    return whole


def _lengths(counts: object, size: int) -> list[int] | None:
    try:
        given = [integer(n) for n in counts]  # type: ignore[attr-defined]
    except TypeError:  # not a sequence
        return None
    lengths = [n for n in given if n is not None and 0 <= n <= sys.maxsize]
    return lengths if len(lengths) == len(given) == size else None


def _iterable(value: object) -> bool:
    return hasattr(value, "__iter__")


def _no_length(counts: object, size: int) -> str | None:
    """Return what among as many values as ranks is no length; None where their number is wrong."""
    try:
        given = list(counts)  # type: ignore[call-overload]
    except TypeError:  # not a sequence
        return None
    if len(given) != size:
        return None
    for value in given:
        number = integer(value)
        if number is None or not 0 <= number <= sys.maxsize:
            return repr(value)
    return None


def checked_length(call: str, array: Operand, length: int, told: str, what: str = "x") -> None:
    """Refuse an array whose first axis is not as long as ``told`` says."""
    if not array.shape or array.shape[0] != length:
        raise InvalidArgumentError(
            f"{call}: {what} has shape {array.shape}, but {told} is {length}: the first axis must "
            "be as long"
        )


def in_elements(call: str, lengths: Sequence[int], like: Operand) -> list[int]:
    """Turn lengths along the first axis to numbers of elements."""
    row = math.prod(like.shape[1:])
    if max(sum(lengths), sum(lengths) * row * itemsize(like)) > sys.maxsize:
        raise InvalidArgumentError(
            f"{call}: the lengths of all parts, {sum(lengths)} together, are larger than any memory"
        )
    return [n * row for n in lengths]


def equal_part(call: str, source: Operand, size: int, ragged: str) -> Shape:
    """Return the shape of one of ``size`` equal parts of the first axis."""
    if not source.shape or source.shape[0] % size:
        raise InvalidArgumentError(
            f"{call}: x of shape {source.shape} does not split into {size} equal parts along its "
            f"first axis: pad it, or give the lengths of the parts to {ragged}"
        )
    return (source.shape[0] // size, *source.shape[1:])


def joined_shapes(source: Operand, size: int) -> list[Shape]:
    """Return the shapes that equal parts may have when they are joined."""
    stacked = (size, *source.shape)
    return [(size * source.shape[0], *source.shape[1:]), stacked] if source.shape else [stacked]


def part_shapes(part: Shape) -> list[Shape]:
    """Return the shapes that the result of one part may have: a part of one row is that row, too.

    ``part`` comes from :func:`equal_part`.
    """
    return [part, part[1:]] if part[0] == 1 else [part]


def in_place_target(call: str, source: Operand, out: Array | None) -> Operand:
    """Return where the result of a call goes whose result is as large as its input."""
    if out is None:
        refuse_repeats(source, f"{call}: x")
        return source if source.writable else fresh(source, source.shape)
    return _given(call, source, out, [source.shape])


def refuse_out_of_a_tree(call: str, tree: object, out: Array | None) -> None:
    """Refuse an ``out`` beside a list, tuple or dict of arrays, which are changed in place."""
    if out is not None:
        raise InvalidArgumentError(
            f"{call}: out is given for a {type(tree).__name__} of arrays, which is reduced in "
            "place: leave out away, or make a call for each array"
        )


def apart_target(call: str, source: Operand, out: Array | None, shapes: Sequence[Shape]) -> Operand:
    """Return where the result of a call goes whose result is larger or smaller than its input.

    ``shapes`` are those that ``out`` may have; a new array gets the first.
    """
    return fresh(source, shapes[0]) if out is None else _given(call, source, out, shapes)


def received(call: str, x: Array | None, out: Array | None, rank: int, root: int) -> Operand:
    """Return where the part goes that a rank gets from the root, and hands nothing in itself."""
    if out is not None:
        return _written(out, f"{call}: out")
    if x is None:
        raise InvalidArgumentError(
            f"{call}: rank {rank} gives neither x nor out, so it is not known what it expects from "
            f"the root, rank {root}: pass out, or as x an array of the shape and dtype of its part"
        )
    like = anywhere(x, f"{call}: x")
    return like if like.writable else fresh(like, like.shape)


def _written(out: Array, what: str) -> Operand:
    """Resolve an array that is written and not read."""
    there = gpu_arrays.on_gpu(out, what)
    if there is None:
        return output(out, what)
    if not there.writable:
        raise InvalidArgumentError(f"{what} is read-only: pass an array that can be written")
    return there


def checked_room(call: str, source: Operand, out: Array | None) -> int:
    """Return the length of ``out`` along its first axis where it is not known how long it must be.

    All else about it is checked. UNKNOWN where there is none.
    """
    if out is None:
        return UNKNOWN
    target = gpu_arrays.output(out, source, f"{call}: out")
    room = target.shape[0] if target.shape else 0
    _given(call, source, out, [(room, *source.shape[1:])])
    if _overlap(source, target):
        raise InvalidArgumentError(
            f"{call}: x and out overlap, and where x belongs in out is not known before all ranks "
            "have told their lengths: give the lengths of all ranks, or an out of its own"
        )
    return room


def _overlap(one: Operand, other: Operand) -> bool:
    if not (one.elements and other.elements):
        return False
    first, second = (int(ffi.cast("uintptr_t", each.pointer)) for each in (one, other))
    size = itemsize(one)  # which both have
    return first < second + other.elements * size and second < first + one.elements * size


def _given(call: str, source: Operand, out: Array, shapes: Sequence[Shape]) -> Operand:
    target = gpu_arrays.output(out, source, f"{call}: out")
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
