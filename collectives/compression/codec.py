# SPDX-License-Identifier: Apache-2.0
"""Codecs of the program: arrays are encoded, added up as codes by any algorithm, and decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from collectives.arrays import Operand
from collectives.compression.agreement import compared
from collectives.compression.time_left import TimeLeft
from collectives.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collectives.reductions import Reductions

Vector: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_REAL = "fiubV"  # V: bfloat16 and floats of 8 bits


class Compressor(Protocol):
    """What ``compress=`` takes for dense arrays."""

    def reduce(self, comm: Reductions, x: Vector, op: str, timeout: float | None) -> Vector:
        """Return the sum or average over all ranks of ``x``, one-dimensional, in its dtype.

        ``timeout``, in seconds, is for all calls that it makes; None: that of the communicator.
        What it keeps changes when all of them have succeeded.
        """


def dense_vector(source: Operand, what: str) -> Vector:
    """Return the memory of an operand as one NumPy vector."""
    array = source.array
    if not isinstance(array, np.ndarray):  # a tensor
        if str(array.dtype) == "torch.bfloat16":
            raise InvalidArgumentError(f"{what} is bfloat16: pass x.float()")
        array = array.detach().numpy()
    vector: Vector = array.reshape(-1)
    return vector


@dataclass(frozen=True)
class Codec:
    """A linear codec: the sum of codes is the code of the sum. Made by :func:`codec`."""

    encode: Callable[[Vector], Vector]
    decode: Callable[[Vector, int], Vector]

    def reduce(self, comm: Reductions, x: Vector, op: str, timeout: float | None) -> Vector:
        """Encode, add up the codes, decode."""
        left = TimeLeft(comm, timeout)
        given = x.view()
        given.flags.writeable = False  # it is the program's: a call that fails leaves it as it was
        encoded = self.encode(given)
        code = np.ascontiguousarray(encoded)
        if code.dtype.kind in "OSU":
            raise InvalidArgumentError(
                f"codec: encode gave {type(encoded).__name__}: give an array of numbers"
            )
        if np.may_share_memory(code, x):
            code = code.copy()
        compared(comm, code, op, left(), how_made="a codec", of=x)
        result = np.asarray(self.decode(code, x.size))
        if result.size != x.size:
            raise InvalidArgumentError(
                f"codec: decode gave {result.size} elements, where {x.size} were encoded"
            )
        if result.dtype.kind not in _REAL:
            raise InvalidArgumentError(f"codec: decode gave {result.dtype}: give real numbers")
        return result.reshape(-1).astype(x.dtype, copy=False)


def codec(encode: Callable[[Vector], Vector], decode: Callable[[Vector, int], Vector]) -> Codec:
    """Return a codec of the program for ``allreduce(x, compress=...)``.

    It must be linear: ``decode`` of a sum of codes is the sum of what they were made of, or as near
    to it as the program wants, since codes are added up by an ordinary allreduce, whichever
    algorithm that runs. The factors of PowerSGD, the Hadamard transforms of THC and a common scale
    are such; choosing elements or scales on each rank alone is not.

    Args:
        encode: Takes a one-dimensional array, which is read-only and the program's own: the result
            may be written there, so copy what is to be kept. Returns an array of the same shape and
            dtype on all ranks. It may call collectives itself, to agree on a scale.
        decode: Takes the sum (or average) of the codes and the number of elements that ``encode``
            was given, returns that many elements, real numbers.

    Raises InvalidArgumentError for what cannot be called.
    """
    for name, function in (("encode", encode), ("decode", decode)):
        if not callable(function):
            raise InvalidArgumentError(f"codec: {name} is {function!r:.80}: pass a function")
    return Codec(encode, decode)
