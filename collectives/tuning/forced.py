# SPDX-License-Identifier: Apache-2.0
"""Algorithms that a program wishes for, as choices."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from collectives._ffi import check, lib
from collectives.catalogue import algorithms
from collectives.defined import own_algorithm
from collectives.errors import UnsupportedError
from collectives.names import KINDS, OF_RIVALS, RIVALS, choose_from
from collectives.tuning.candidates import INLINE_BYTES
from collectives.tuning.table import Choice

if TYPE_CHECKING:
    from collectives.tuning.tunable import Tunable

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
    """Return the collectives for which COLLECTIVES_ALGORITHM wishes for one of our algorithms."""
    return tuple(kind for kind, _, name in _parts(words) if name not in RIVALS)


def wished_of_rivals(words: str) -> dict[str, str]:
    """Return those which it wishes a way of NCCL to run, of arrays on GPUs, and which way."""
    return {kind: name for kind, _, name in _parts(words) if name in RIVALS}


def _parts(words: str) -> list[tuple[str, str, str]]:
    return [part.partition(":") for part in words.split(",") if part]


class Wished(NamedTuple):
    """What is wished for of one collective: an algorithm as choices, or a ``way`` of NCCL."""

    lines: list[Choice]
    way: str = ""  # of arrays on GPUs: others run what they do anyway


class Forced(AbstractContextManager[None]):
    """A wish for the length of a ``with`` block, as often as it is entered."""

    def __init__(self, comm: Tunable, algorithms: Mapping[str, str]) -> None:
        """Wish for nothing yet."""
        self._comm, self._algorithms = comm, algorithms
        self._made: list[dict[str, Wished]] = []  # of each block that it is in

    def __enter__(self) -> None:
        """Choose by it."""
        self._made.append(self._comm._wish(self._algorithms))

    def __exit__(self, *_: object) -> None:
        """Take it back, and none that other blocks have made."""
        self._comm._take_back(self._made.pop())


def wished(kind: str, name: str, p: int, shared: bool) -> Wished:
    """Return the choices of an algorithm for all sizes, near and far, or a way of NCCL."""
    choose_from(kind, KINDS, "force: collective")
    if isinstance(name, str) and kind in OF_RIVALS.get(name, ()):
        return Wished([], name)
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
    return Wished(lines)
