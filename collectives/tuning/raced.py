# SPDX-License-Identifier: Apache-2.0
"""Races as a table keeps them, so that a later one with more time goes on where they ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from collectives.names import KINDS, algorithm_names, integer

MODES = ("staged", "inline", "wire")
_MOST, _MOST_LAG, _MOST_TILE = 1 << 62, 1 << 10, 1 << 30


@dataclass(frozen=True)
class Plan:
    """One that raced, and the median of its seconds per call."""

    algorithm: str
    mode: str
    lag: int
    tile_bytes: int
    seconds: float


@dataclass(frozen=True)
class Race:
    """What was raced at one size: the fastest plan, and those that were not far behind.

    ``far``: on cores that share no cache; None: they were moved meanwhile. ``hasty``: there was no
    time for all rounds.
    """

    kind: str
    nbytes: int
    far: bool | None
    hasty: bool
    plans: tuple[Plan, ...]


_OF_PLAN, _OF_RACE = ({field.name for field in fields(cls)} for cls in (Plan, Race))


def possible(one: Mapping[str, Any], *names: str) -> bool:
    """Tell whether a plan has a mode, and numbers of these names, that there can be."""
    for name in names:
        number = one[name]
        if type(number) is not int or not 0 <= number <= _MOST:  # as JSON has them
            return False
    fits = one["lag"] <= _MOST_LAG and one["tile_bytes"] <= _MOST_TILE
    return bool(fits and one["mode"] in MODES)


def races_in(listed: Any, refuse: Callable[[str], NoReturn]) -> tuple[Race, ...]:
    """Return the races of a table in JSON; ``refuse`` says what is wrong."""
    if not isinstance(listed, list):
        refuse("has no list of races")
    return tuple(_races(listed, refuse))


def _races(listed: list[Any], refuse: Callable[[str], NoReturn]) -> Iterator[Race]:
    for number, one in enumerate(listed):
        if not _has_keys(one, _OF_RACE) or not isinstance(one["plans"], list) or not one["plans"]:
            refuse(f"has no race at place {number}")
        kind, nbytes = one["kind"], integer(one["nbytes"])
        known = isinstance(kind, str) and kind in KINDS
        names = algorithm_names(KINDS[kind]) if known else ()
        if not all(_is_plan(plan, names) for plan in one["plans"]):
            refuse(f"has an impossible plan in the race at place {number}: tune again")
        words = isinstance(one["far"], bool | None) and isinstance(one["hasty"], bool)
        if nbytes is None or not 0 < nbytes <= _MOST or not words:
            refuse(f"has an impossible number or word in the race at place {number}")
        plans = tuple(Plan(**plan) for plan in one["plans"])
        yield Race(kind, nbytes, one["far"], one["hasty"], plans)


def _is_plan(one: Any, names: tuple[str, ...]) -> bool:
    if not _has_keys(one, _OF_PLAN) or one["algorithm"] not in names:
        return False
    seconds = one["seconds"]
    times = isinstance(seconds, float) and 0 <= seconds < math.inf
    return times and possible(one, "lag", "tile_bytes")


def _has_keys(one: Any, keys: set[str]) -> bool:
    return isinstance(one, dict) and one.keys() == keys
