# SPDX-License-Identifier: Apache-2.0
"""Algorithms that a program wishes for, as choices."""

from __future__ import annotations

from collectives._ffi import check, lib
from collectives.catalogue import algorithms
from collectives.defined import own_algorithm
from collectives.errors import UnsupportedError
from collectives.names import KINDS, choose_from
from collectives.tuning.candidates import INLINE_BYTES
from collectives.tuning.table import Choice

# As long as large messages flow well through slots, and over a network.
_TILE, _WIRE_TILE = 256 << 10, 64 << 10


ALGORITHM = "COLLECTIVES_ALGORITHM"


def check_wishes(words: str, p: int) -> None:
    """Refuse what COLLECTIVES_ALGORITHM must not say for so many ranks, as the native layer does.

    Raises InvalidArgumentError or UnsupportedError.
    """
    if words:
        check(lib.coll_check_wishes(words.encode("utf-8", "replace"), p))


def wished_kinds(words: str) -> tuple[str, ...]:
    """Return the collectives that COLLECTIVES_ALGORITHM speaks of."""
    return tuple(part.partition(":")[0] for part in words.split(",") if part)


def lines_of(kind: str, name: str, p: int, shared: bool) -> list[Choice]:
    """Return the choices of an algorithm for all sizes, near and far."""
    choose_from(kind, KINDS, "force: collective")
    known = {a.name: a for a in algorithms(kind) if own_algorithm(kind, a.name) is None}
    algorithm = known[choose_from(name, known, f"force: {kind}: algorithm")]
    if not algorithm.fits(p):
        raise UnsupportedError(
            f"force: {kind}: {name} is not defined for {p} ranks: {algorithm.restriction}"
        )
    lines = []
    for far in (False, True):
        if shared:
            lines.append(Choice(kind, 0, name, "inline", 0, 0, far))
            lines.append(Choice(kind, INLINE_BYTES + 1, name, "staged", 1, _TILE, far))
        else:
            lines.append(Choice(kind, 0, name, "wire", 1, _WIRE_TILE, far))
    return lines
