# SPDX-License-Identifier: Apache-2.0
"""A topology: the place of each rank, and the cost of the way between two of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from types import MappingProxyType
from typing import Any

from collectives.errors import InvalidArgumentError

# From the nearest to the farthest: ranks whose nearest common room is a NUMA node, a package
# (socket), a host, or none.
LEVELS = ("numa", "package", "host", "network")


@dataclass(frozen=True)
class Link:
    """The cost of a message by Hockney's model: ``alpha`` + n ``beta``.

    ``alpha`` is in seconds, ``beta`` in seconds per byte (R. W. Hockney, The communication
    challenge for MPP, Parallel Computing 20, 1994).

    Raises:
        InvalidArgumentError: one of them is negative or no number.
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        """Refuse what no link has."""
        for name in ("alpha", "beta"):
            if not (math.isfinite(value := getattr(self, name)) and value >= 0):
                raise InvalidArgumentError(f"a link's {name} is {value}: it must be 0 or more")

    def seconds(self, nbytes: int) -> float:
        """Return how long a message of so many bytes takes."""
        return self.alpha + nbytes * self.beta

    @property
    def bandwidth(self) -> float:
        """Bytes per second of a long message; infinity where ``beta`` is 0."""
        return 1 / self.beta if self.beta else math.inf


@dataclass(frozen=True)
class Place:
    """Where a rank is.

    ``package`` and ``numa`` number the sockets and the NUMA nodes of its host; ``cpus`` are those
    that it may run on.
    """

    host: str
    package: int = 0
    numa: int = 0
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class Topology:
    """The places of ranks 0, 1, ..., the links of levels, and of pairs that differ from them.

    A value: :meth:`edited` makes another one. ``links`` has those of ``LEVELS`` that were measured
    or given; ``pairs`` the links between two ranks, the lower first.

    Raises:
        InvalidArgumentError: there is no rank, no such level, or no such pair.
    """

    places: tuple[Place, ...]
    links: Mapping[str, Link] = field(default_factory=dict)
    pairs: Mapping[tuple[int, int], Link] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check, and keep copies that nobody can change."""
        if not self.places:
            raise InvalidArgumentError("a topology needs the place of one rank at least")
        for level in self.links:
            _check_level(level)
        for a, b in self.pairs:
            if not 0 <= a < b < self.size:
                raise InvalidArgumentError(
                    f"({a}, {b}) is no pair of {self.size} ranks, the lower first"
                )
        object.__setattr__(self, "places", tuple(self.places))
        object.__setattr__(self, "links", MappingProxyType(dict(self.links)))
        object.__setattr__(self, "pairs", MappingProxyType(dict(self.pairs)))

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.places)

    def level(self, a: int, b: int) -> str:
        """Return the level of ``LEVELS`` that two ranks meet on."""
        one, other = self._place(a), self._place(b)
        if one.host != other.host:
            return "network"
        if one.package != other.package:
            return "host"
        return "package" if one.numa != other.numa else "numa"

    def link(self, a: int, b: int) -> Link | None:
        """Return the link between two ranks: the pair's own, else its level's; None: unknown."""
        own = self.pairs.get((min(a, b), max(a, b)))
        return own if own is not None else self.links.get(self.level(a, b))

    def groups(self, level: str) -> list[list[int]]:
        """Return the ranks that meet on this level or a nearer one, by their lowest rank."""
        depth = LEVELS.index(_check_level(level))
        rooms: dict[tuple[Any, ...], list[int]] = {}
        for rank, place in enumerate(self.places):
            whole = (place.host, place.package, place.numa)
            rooms.setdefault(whole[: 3 - depth], []).append(rank)
        return list(rooms.values())

    def nested(self) -> list[Any]:
        """Return the ranks in lists of lists, as :func:`collectives.product` takes them.

        A level is left out where it divides nothing, or puts every rank into a room of its own.
        """
        kept: list[str] = []
        rooms = 1
        for level in ("host", "package", "numa"):
            if rooms < len(self.groups(level)) < self.size:
                kept.append(level)
                rooms = len(self.groups(level))
        return self._split(list(range(self.size)), kept)

    def edited(
        self,
        places: Mapping[int, Place] | None = None,
        links: Mapping[str, Link] | None = None,
        pairs: Mapping[tuple[int, int], Link] | None = None,
    ) -> Topology:
        """Return a topology that differs in these places, links of levels and links of pairs."""
        moved = list(self.places)
        for rank, place in (places or {}).items():
            self._place(rank)
            moved[rank] = place
        return replace(
            self,
            places=tuple(moved),
            links={**self.links, **(links or {})},
            pairs={**self.pairs, **(pairs or {})},
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a JSON file."""
        from collectives.topology.files import text_of

        with open(path, "w", encoding="utf-8") as file:
            file.write(text_of(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Topology:
        """Read what :meth:`save` wrote.

        Raises:
            InvalidArgumentError: the file holds something else; the text says what.
        """
        from collectives.topology.files import topology_in

        with open(path, encoding="utf-8") as file:
            return topology_in(file.read(), str(path))

    def draw(self, *, format: str = "svg") -> str:
        """Return a drawing: ``"svg"``, or ``"text"`` for a terminal."""
        from collectives.topology.draw import drawing

        return drawing(self, format)

    def __str__(self) -> str:
        """Return the drawing in letters."""
        return self.draw(format="text")

    def _split(self, ranks: list[int], levels: list[str]) -> list[Any]:
        if not levels:
            return ranks
        rooms = [group for group in self.groups(levels[0]) if set(group) <= set(ranks)]
        return [self._split(room, levels[1:]) for room in rooms]

    def _place(self, rank: int) -> Place:
        if not 0 <= rank < self.size:
            raise InvalidArgumentError(f"rank {rank} is none of {self.size}")
        return self.places[rank]


def _check_level(level: str) -> str:
    if level not in LEVELS:
        raise InvalidArgumentError(f"'{level}' is no level: it is one of {', '.join(LEVELS)}")
    return level
