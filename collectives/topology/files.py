# SPDX-License-Identifier: Apache-2.0
"""Topologies as JSON: what is written is what is read, and anything else is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from collectives.errors import InvalidArgumentError
from collectives.topology.value import Link, Place, Topology

FORMAT = "collectives topology"
VERSION = 1


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


def topology_in(text: str, name: str) -> Topology:
    """Return the topology that the text of the file ``name`` holds."""
    try:
        document = json.loads(text)
    except ValueError as error:
        _refuse(name, f"is not JSON: {error}")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        _refuse(name, f"does not say that its format is '{FORMAT}'")
    if document.get("version") != VERSION:
        _refuse(name, f"has version {document.get('version')!r}; this library reads {VERSION}")
    try:
        return _made(document)
    except InvalidArgumentError as error:
        _refuse(name, f"does not hold a topology: {error}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        _refuse(name, f"does not hold a topology: {error!r}")


def _made(document: Mapping[str, Any]) -> Topology:
    places = tuple(
        Place(
            str(place["host"]),
            int(place["package"]),
            int(place["numa"]),
            tuple(int(cpu) for cpu in place["cpus"]),
        )
        for place in document["places"]
    )
    links = {str(level): _link(link) for level, link in document["links"].items()}
    pairs = {(int(p["ranks"][0]), int(p["ranks"][1])): _link(p) for p in document["pairs"]}
    return Topology(places, links, pairs)


def _link(values: Mapping[str, Any]) -> Link:
    return Link(float(values["alpha"]), float(values["beta"]))


def _refuse(name: str, why: str) -> NoReturn:
    raise InvalidArgumentError(f"{name} {why}")
