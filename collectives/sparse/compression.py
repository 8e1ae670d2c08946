# SPDX-License-Identifier: Apache-2.0
"""What makes sparse sums smaller, and less exact, where a program asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from collectives.errors import InvalidArgumentError
from collectives.names import integer

_BITS = (2, 4, 8)


@dataclass(frozen=True)
class QSGD:
    """Sums that are rounded to a few levels, by chance and right on average, for less to travel.

    Alistarh, Grubic, Li, Tomioka & Vojnovic, "QSGD: Communication-Efficient SGD via Gradient
    Quantization and Encoding", NIPS 2017. For ``comm.allreduce(sparse, compress=cl.QSGD(4))``:
    contributions are added as ever, then the rank that owns a part of the vector rounds it once,
    and all ranks, that one too, get the same bits. Of every 1024 elements the largest magnitude is
    the scale: each value becomes a multiple, up to 1, 7 or 127, of a step that is the scale divided
    by that, and is less than one step off. The step is rounded up until all its multiples are
    numbers of the dtype: by less than 1/8, of bfloat16 in 8 bits by less than 2.

    Where one of the 1024 is NaN or infinite, or no step is small or large enough, they travel as
    they are. One rank alone sends nothing, so nothing is rounded.

    Attributes:
        bits: 2, 4 or 8 for each value, its sign among them.
        seed: 0 ... 2**64-1, of the chance, the same on all ranks. The same call of a communicator,
            counted from its start, rounds alike whenever the program runs; another call differs.

    Raises InvalidArgumentError for other numbers.
    """

    bits: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        bits, seed = integer(self.bits), integer(self.seed)
        if bits not in _BITS:
            raise InvalidArgumentError(f"QSGD: bits is {self.bits!r}: it is 2, 4 or 8")
        if seed is None or not 0 <= seed < 1 << 64:
            raise InvalidArgumentError(
                f"QSGD: seed is {self.seed!r}: it is an integer, 0 ... 2**64-1"
            )
        for name, number in (("bits", bits), ("seed", seed)):  # NumPy's become Python's
            object.__setattr__(self, name, number)
