# SPDX-License-Identifier: Apache-2.0
"""Every plan that a call could run: each legal algorithm, with several sets of parameters."""

from __future__ import annotations

import hashlib
from array import array
from functools import cache

from collectives._ffi import lib
from collectives.catalogue import Algorithm, algorithms
from collectives.defined import own_algorithm, unpacked
from collectives.names import algorithm_index
from collectives.tuning.table import Choice

_MOST_COMPARED = 16  # ranks of which schedules are compared
INLINE_BYTES = 4096  # of longer vectors messages do not travel with their flags
# (lag, tile_bytes): how far rounds run ahead, and the length of what flows through a slot.
_SMALL = ((0, 0), (1, 0), (2, 0), (1, 4096))
_LARGE = (
    (1, 16 << 10),
    (1, 32 << 10),
    (1, 64 << 10),
    (1, 128 << 10),
    (1, 256 << 10),
    (0, 256 << 10),
)
_WIRE = ((1, 16 << 10), (1, 64 << 10), (1, 128 << 10), (2, 64 << 10), (0, 0))


def built_in(kind: str, p: int) -> list[Algorithm]:
    """Return the algorithms of the library that are defined for so many ranks."""
    return [a for a in algorithms(kind) if own_algorithm(kind, a.name) is None and a.fits(p)]


@cache
def distinct(kind: str, p: int) -> tuple[str, ...]:
    """Return the names of algorithms, of those with the same schedule for so many ranks the first.

    Among few ranks many are the same: two of them have but one way to exchange two halves.
    """
    first: dict[bytes, str] = {}
    for a in built_in(kind, p):
        words = a.name.encode()
        if p <= _MOST_COMPARED:
            index = algorithm_index(kind, a.name)
            words = array("i", unpacked(lib.coll_schedule, index, p, 0)).tobytes()
        first.setdefault(hashlib.sha256(words).digest(), a.name)
    return tuple(first.values())


def parameters(nbytes: int, shared: bool) -> list[tuple[str, int, int]]:
    """Return the sets of parameters of one algorithm: mode, lag, tile_bytes.

    ``shared``: the ranks share memory. What cannot differ for vectors of this length is left out.
    """
    if not shared:
        return [("wire", lag, tile) for lag, tile in _WIRE]
    if nbytes <= INLINE_BYTES:
        return [("inline", 0, 0), *(("staged", lag, tile) for lag, tile in _SMALL)]
    sets = [("staged", lag, tile) for lag, tile in _LARGE if tile < 2 * nbytes]
    return sets if len(sets) >= len(_SMALL) else [*sets, *(("staged", *one) for one in _SMALL)]


def candidates(kind: str, p: int, nbytes: int, shared: bool) -> list[Choice]:
    """Return every plan that a call on a vector of so many bytes could run, each once."""
    return [
        Choice(kind, nbytes, name, mode, lag, tile)
        for name in distinct(kind, p)
        for mode, lag, tile in parameters(nbytes, shared)
    ]
