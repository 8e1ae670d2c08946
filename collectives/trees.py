# SPDX-License-Identifier: Apache-2.0
"""Structures of arrays: lists, tuples and dicts, of arrays or of such."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from collectives.errors import InvalidArgumentError


def leaves(name: str, tree: Any) -> list[tuple[str, Any]]:
    """Return the arrays of a structure, in order, each with its place, as "x['bias'][0]".

    Raises InvalidArgumentError, as of the collective ``name``, for what cannot be one.
    """
    try:
        found = list(_leaves(tree, "x"))
    except RecursionError as error:
        raise InvalidArgumentError(
            f"{name}: x is a {type(tree).__name__} that contains itself, or is nested too deeply"
        ) from error
    for _, leaf in found:
        if isinstance(leaf, bool | int | float | complex | str | None):
            raise InvalidArgumentError(
                f"{name}: x is a {type(tree).__name__} with {leaf!r} in it: "
                "pass an array, or a list, tuple or dict of arrays"
            )
    return found


def rebuilt(tree: Any, results: Iterator[Any]) -> Any:
    """Return the same structure with results in the places of its arrays."""
    if isinstance(tree, dict):
        return {key: rebuilt(part, results) for key, part in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(rebuilt(part, results) for part in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(rebuilt(part, results) for part in tree)
    return next(results)


def _leaves(tree: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for key, part in tree.items():
            yield from _leaves(part, f"{place}[{_word(key)}]")
    elif isinstance(tree, list | tuple):
        for i, part in enumerate(tree):
            yield from _leaves(part, f"{place}[{i}]")
    else:
        yield place, tree


def _word(key: Any) -> str:
    """Return a key as all ranks write it: an object's own words may hold its address."""
    if isinstance(key, Enum):
        return f"{type(key).__name__}.{key.name}"
    if isinstance(key, str | bytes | int | float | complex | None):
        return repr(key)
    if isinstance(key, tuple):
        return f"({', '.join(_word(part) for part in key)})"
    return type(key).__name__
