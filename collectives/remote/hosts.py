# SPDX-License-Identifier: Apache-2.0
"""Which hosts, and which ranks on each: ``a,b:2`` or ``user@a:4,[fe80::1%2]:4``."""

from __future__ import annotations

import re
from dataclasses import dataclass

# What ssh takes, and nothing that it or a shell would read as something else.
_HOST = re.compile(
    r"(?P<host>(?:[\w.+-]+@)?(?:[\w][\w.-]*|\[[\da-fA-F:.]+(?:%\w+)?\]))(?::(?P<n>\d+))?"
)
_MOST_SLOTS = 1024


@dataclass(frozen=True)
class Share:
    """The ranks of one host, which ``name`` tells ssh how to reach."""

    name: str
    ranks: range


def shares(text: str, ranks: int | None = None) -> list[Share]:
    """Read `--hosts`: hosts with their slots, 1 where no number is given, filled in this order.

    ``ranks``: how many there are to be; None: as many as there are slots. Hosts for which none is
    left get none. Raises ValueError with a sentence.
    """
    slots = [_slots(part) for part in text.split(",")]
    names = [name for name, _ in slots]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{twice} is there twice: give it once, with its ranks, as {twice}:2")
    places = sum(number for _, number in slots)
    total = places if ranks is None else ranks
    if total > places:
        raise ValueError(
            f"{total} ranks do not fit: the hosts have {places} slots; give more, as "
            f"{names[0]}:{slots[0][1] + total - places}"
        )
    found, first = [], 0
    for name, number in slots:
        last = min(first + number, total)
        if last > first:
            found.append(Share(name, range(first, last)))
        first = last
    return found


def _slots(part: str) -> tuple[str, int]:
    match = _HOST.fullmatch(part)
    if match is None:
        raise ValueError(
            f"{part!r} is no host: give names with commas between them, each with its number of "
            "ranks or without, as a,b:2"
        )
    number = int(match["n"] or 1)
    if not 1 <= number <= _MOST_SLOTS:
        raise ValueError(f"{part!r} has {number} slots: a host has 1 to {_MOST_SLOTS}")
    return match["host"], number
