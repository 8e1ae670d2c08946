# SPDX-License-Identifier: Apache-2.0
"""Topologies as JSON: what is written is what is read, and anything else is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, NoReturn

from collectives.errors import InvalidArgumentError
from collectives.topology.checked import numbers, refused, shown
from collectives.topology.value import Link, Place, Topology

FORMAT = "collectives topology"
# Places of version 1 have no source, links of 1 and 2 neither overhead nor bucket. In 3 places have
# no machine, links no overhead_per_byte.
VERSION = 4
LONGEST = 1 << 26  # bytes of a file: a million ranks
_KEYS = ("format", "version", "places", "links", "pairs")
_PLACE_OF_1, _LINK_OF_1 = ("host", "package", "numa", "cpus"), ("alpha", "beta")
_PLACE_OF_2, _LINK_OF_3 = (*_PLACE_OF_1, "source"), (*_LINK_OF_1, "overhead", "bucket")
_PLACE, _LINK = (*_PLACE_OF_2, "machine"), (*_LINK_OF_3, "overhead_per_byte")
_OF_PLACE = {1: _PLACE_OF_1, 2: _PLACE_OF_2, 3: _PLACE_OF_2, VERSION: _PLACE}
_OF_LINK = {1: _LINK_OF_1, 2: _LINK_OF_1, 3: _LINK_OF_3, VERSION: _LINK}


def text_of(topology: Topology) -> str:
    """Return the text of the file."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "places": [asdict(place) for place in topology.places],
        "links": {level: asdict(link) for level, link in topology.links.items()},
        "pairs": [
            {"ranks": list(ranks), **asdict(link)} for ranks, link in sorted(topology.pairs.items())
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def topology_in(content: bytes, name: str) -> Topology:
    """Return the topology that the file ``name`` holds; InvalidArgumentError says what is wrong."""
    if len(content) > LONGEST:
        _refuse(name, f"has more than {LONGEST} bytes, which is no topology")
    document = _parsed(content, name)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        _refuse(name, f"does not say that its format is '{FORMAT}'")
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version not in _OF_LINK:
        _refuse(name, f"has version {shown(version)}; this library reads 1 to {VERSION}")
    with _within(f"{name} does not hold a topology"):
        return _made(document, version)


def _parsed(content: bytes, name: str) -> Any:
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once)
    except InvalidArgumentError as error:
        _refuse(name, f"is not JSON that can be relied on: {error}")
    except UnicodeDecodeError as error:
        _refuse(name, f"is not text: byte {error.start} is no UTF-8")
    except RecursionError:
        _refuse(name, "is nested too deeply for a topology")
    except ValueError as error:
        _refuse(name, f"is not JSON: {error}")


def _once(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are there once: of two, JSON does not say which counts."""
    found = dict(items)
    if len(found) < len(items):
        keys = [key for key, _ in items]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidArgumentError(f"the key {shown(twice)} is there twice in one object")
    return found


def _made(document: dict[str, Any], version: int) -> Topology:
    _check_keys(document, _KEYS)
    places = tuple(_each(document, "places", partial(_place, _OF_PLACE[version])))
    links = {}
    if not isinstance(document["links"], dict):
        raise refused("links", document["links"], "an object, with a link for each level")
    for level, values in document["links"].items():
        with _within(f"links[{shown(level)}]"):
            links[level] = _link(_OF_LINK[version], values)
    pairs: dict[tuple[int, int], Link] = {}
    for ranks, link in _each(document, "pairs", partial(_pair, _OF_LINK[version])):
        if ranks in pairs:
            raise InvalidArgumentError(f"the ranks {list(ranks)} are twice in pairs")
        pairs[ranks] = link
    return Topology(places, links, pairs)


def _each(document: dict[str, Any], key: str, make: Callable[[Any], Any]) -> Iterator[Any]:
    """Give what is made of each value of a list."""
    if not isinstance(document[key], list):
        raise refused(key, document[key], "a list")
    for i, values in enumerate(document[key]):
        with _within(f"{key}[{i}]"):
            made = make(values)
        yield made


def _place(keys: tuple[str, ...], values: Any) -> Place:
    _check_keys(values, keys)
    return Place(**values)


def _pair(keys: tuple[str, ...], values: Any) -> tuple[tuple[int, int], Link]:
    link = _link(keys, values, ("ranks",))
    ranks = values["ranks"]
    if not isinstance(ranks, list) or len(ranks) != 2:
        raise refused("ranks", ranks, "a list of two ranks, the lower first")
    lower, higher = numbers("ranks", ranks)
    return (lower, higher), link


def _link(keys: tuple[str, ...], values: Any, beside: tuple[str, ...] = ()) -> Link:
    """Return the link of an object that has those keys, too."""
    _check_keys(values, (*beside, *keys))
    return Link(**{key: values[key] for key in keys})


def _check_keys(values: Any, keys: tuple[str, ...]) -> None:
    wanted = f"an object with the keys {', '.join(keys)}"
    if not isinstance(values, dict):
        raise InvalidArgumentError(f"{shown(values)} is there: give {wanted}")
    for key in keys:
        if key not in values:
            raise InvalidArgumentError(f"the key '{key}' is missing: give {wanted}")
    for key in values:
        if key not in keys:
            raise InvalidArgumentError(f"the key {shown(key)} is unknown: give {wanted}")


@contextmanager
def _within(where: str) -> Iterator[None]:
    """Say where in the file something is wrong."""
    try:
        yield
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{where}: {error}") from None


def _refuse(name: str, why: str) -> NoReturn:
    raise InvalidArgumentError(f"{name} {why}")
