# SPDX-License-Identifier: Apache-2.0
"""What a topology may be made of; anything else is refused, with what is wanted instead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, TypeVar

from collectives.errors import InvalidArgumentError
from collectives.names import MOST_RANKS, integer

_MOST_SHOWN = 60  # letters of a value in an error
T = TypeVar("T")


def shown(value: object) -> str:
    """Return a value as Python writes it, shortened, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # an integer of thousands of digits; an object whose repr() raises
        return f"of type {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def refused(what: str, value: object, wanted: str) -> InvalidArgumentError:
    """Return the error that names a value and says what to give instead."""
    return InvalidArgumentError(f"{what} is {shown(value)}: give {wanted}")


def host_name(what: str, value: object) -> str:
    """Return the name of a host."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise refused(what, value, "its name, printable text")
    return str(value)


def cost(what: str, value: object, unit: str) -> float:
    """Return a cost of a link as a float, 0 or more."""
    try:
        found = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # an integer above 1e308
        found = math.inf
    if isinstance(value, bool) or not (math.isfinite(found) and found >= 0):
        raise refused(what, value, f"{unit}, a number that is 0 or more")
    return found


def number(what: str, value: object) -> int:
    """Return the number of a CPU, or of a room with CPUs."""
    found = integer(value)
    if found is None or not 0 <= found <= MOST_RANKS:
        raise refused(what, value, "an integer, 0 to 2**31 - 1")
    return found


def numbers(what: str, values: object) -> tuple[int, ...]:
    """Return the numbers of several."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise refused(what, values, "a list of integers, 0 or more each")
    return tuple(number(f"{what}[{i}]", value) for i, value in enumerate(values))


def mapping(what: str, value: Mapping[Any, T], wanted: str) -> Mapping[Any, T]:
    """Return a mapping."""
    if not isinstance(value, Mapping):
        raise refused(what, value, f"a mapping of {wanted}")
    return value


def member(what: str, value: object, kind: type[T]) -> T:
    """Return a value that is of this class."""
    if not isinstance(value, kind):
        raise refused(what, value, f"a {kind.__name__}")
    return value


def members(what: str, values: object, kind: type[T], wanted: str) -> list[T]:
    """Return values that are all of this class."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise refused(what, values, wanted)
    return [member(f"{what}[{i}]", value, kind) for i, value in enumerate(values)]
