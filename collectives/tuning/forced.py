# SPDX-License-Identifier: Apache-2.0
"""Algorithms that a program wishes for, as choices."""

from __future__ import annotations

from collections.abc import Mapping

from collectives.algorithms import algorithms
from collectives.errors import UnsupportedError
from collectives.names import KINDS, choose_from
from collectives.tuning.candidates import INLINE_BYTES
from collectives.tuning.table import Choice

# As long as large messages flow well through slots, and over a network.
_TILE, _WIRE_TILE = 256 << 10, 64 << 10


def lines_of(wished: Mapping[str, str], p: int, shared: bool) -> list[Choice]:
    """Return the choices of ``{collective: algorithm}``, for all sizes, near and far."""
    lines = []
    for kind, name in wished.items():
        choose_from(kind, KINDS, "force: collective")
        known = {a.name: a for a in algorithms(kind)}
        algorithm = known[choose_from(name, known, f"force: {kind}: algorithm")]
        if not algorithm.fits(p):
            raise UnsupportedError(
                f"force: {kind}: {name} is not defined for {p} ranks: {algorithm.restriction}"
            )
        for far in (False, True):
            if shared:
                lines.append(Choice(kind, 0, name, "inline", 0, 0, far))
                lines.append(Choice(kind, INLINE_BYTES + 1, name, "staged", 1, _TILE, far))
            else:
                lines.append(Choice(kind, 0, name, "wire", 1, _WIRE_TILE, far))
    return lines
