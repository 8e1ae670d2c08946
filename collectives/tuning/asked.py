# SPDX-License-Identifier: Apache-2.0
"""What tune() may be asked for: kinds of collectives, sizes of vectors, and a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collectives.environment import MOST_TUNING
from collectives.errors import InvalidArgumentError
from collectives.names import KINDS, choose_from, integer

RACED = tuple(name for name in KINDS if name not in ("scan", "exscan"))


def asked_kinds(kinds: Any) -> Sequence[str]:
    """Return the collectives to race."""
    try:
        named = [kinds] if isinstance(kinds, str) else list(kinds)
    except TypeError:
        named = []
    if not named or not all(isinstance(kind, str) for kind in named):
        raise InvalidArgumentError(
            f"tune: kinds is {_shown(kinds)}: give their names, or leave it out for the usual ones"
        )
    return [tuned_kind(kind, "tune: ") for kind in named]


def tuned_kind(kind: str, where: str = "") -> str:
    """Return a collective that races are held for; InvalidArgumentError says which there are."""
    if kind in KINDS and kind not in RACED:
        raise InvalidArgumentError(
            f"{where}collective {kind!r} is not tuned: those that are tuned are {', '.join(RACED)}"
        )
    return choose_from(kind, RACED, f"{where}collective")


def asked_seconds(budget_s: Any, what: str = "tune", zero: bool = False) -> float:
    """Return a time that there can be."""
    try:
        seconds = -1.0 if isinstance(budget_s, str | bytes | bool) else float(budget_s)
    except (TypeError, ValueError, OverflowError):
        seconds = -1.0
    if not (0 < seconds <= MOST_TUNING or (zero and seconds == 0)):
        least = "0 or more" if zero else "above 0"
        raise InvalidArgumentError(
            f"{what}: budget_s is {_shown(budget_s)}: give seconds, {least} and at most "
            f"{MOST_TUNING:g}"
        )
    return seconds


def asked_sizes(sizes: Any) -> Sequence[int]:
    """Return bytes of vectors."""
    try:
        numbers = [integer(size) for size in sizes]
    except TypeError:
        numbers = []
    known = [number for number in numbers if number is not None and 0 < number <= 1 << 32]
    if not numbers or len(known) < len(numbers) or known != sorted(set(known)):
        raise InvalidArgumentError(
            f"tune: sizes are {_shown(sizes)}: give bytes of vectors, 1 to 2**32, in ascending "
            "order"
        )
    return known


def _shown(value: Any) -> str:
    from collectives.topology.checked import shown  # only for what is wrong: it takes milliseconds

    return shown(value)
