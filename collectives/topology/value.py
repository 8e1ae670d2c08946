# SPDX-License-Identifier: Apache-2.0
"""A topology: the place of each rank, and the cost of the way between two of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeVar

from collectives.errors import InvalidArgumentError
from collectives.names import integer
from collectives.topology.checked import (
    cost,
    host_name,
    mapping,
    member,
    members,
    number,
    numbers,
    refused,
    shown,
)
from collectives.whole_file import write_whole

# From the nearest to the farthest: ranks whose nearest common room is a NUMA node, a package
# (socket), a host, or none.
LEVELS = ("numa", "package", "host", "network")
# Who said where a rank is: hwloc, the kernel, NVML of a GPU, or, without a name, whoever made it.
BY_HWLOC, BY_SYS, BY_NVML, BY_HAND = "hwloc", "/sys", "NVML", ""
SOURCES = (BY_HWLOC, BY_SYS, BY_NVML, BY_HAND)
_UNITS = {
    "alpha": "seconds",
    "beta": "seconds per byte",
    "overhead": "seconds",
    "bucket": "bytes",
    "overhead_per_byte": "seconds per byte",
}
T = TypeVar("T")


@dataclass(frozen=True)
class Link:
    """The cost of a message by Hockney's model: ``alpha`` + n ``beta``.

    ``alpha`` is in seconds, ``beta`` in seconds per byte (R. W. Hockney, The communication
    challenge for MPP, Parallel Computing 20, 1994). Simulations take three more: ``overhead``, the
    part of ``alpha`` for which either end is busy, in seconds (o of Culler et al., LogP, PPoPP
    1993), and ``overhead_per_byte``, for which it is busy with each byte besides (O of Hoefler et
    al., LogGOPSim, HPDC 2010); and ``bucket``, the bytes that pass at once after a pause, where a
    bucket of tokens shapes the link, as those of virtual machines.

    Raises:
        InvalidArgumentError: one of them is negative, infinite or no number.
    """

    alpha: float
    beta: float
    overhead: float = 0.0
    bucket: float = 0.0
    overhead_per_byte: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no link has."""
        for name, unit in _UNITS.items():
            value = cost(f"a link's {name}", getattr(self, name), unit)
            object.__setattr__(self, name, value)

    def seconds(self, nbytes: int) -> float:
        """Return how long a message of so many bytes takes, after a pause."""
        return self.alpha + max(nbytes - self.bucket, 0.0) * self.beta

    @property
    def bandwidth(self) -> float:
        """Bytes per second of a long message; infinity where ``beta`` is 0."""
        return 1 / self.beta if self.beta else math.inf


@dataclass(frozen=True)
class Place:
    """Where a rank is.

    ``package`` and ``numa`` number the sockets and the NUMA nodes of its host; ``cpus`` are those
    that it may run on. ``source`` is who said so: ``"hwloc"``, ``"/sys"``, ``"NVML"`` of a GPU, or
    ``""`` for a place that was made by hand; places that differ in nothing else are equal.
    ``machine`` is whose CPUs these are, where several hosts are containers, or namespaces, of one
    machine; ``""``: the host's own.

    Raises:
        InvalidArgumentError: ``host`` or ``machine`` is no printable text, a number is below 0 or
            none, or there is no such source.
    """

    host: str
    package: int = 0
    numa: int = 0
    cpus: tuple[int, ...] = ()
    source: str = field(default=BY_HAND, compare=False)
    machine: str = ""

    def __post_init__(self) -> None:
        """Refuse what no place has."""
        object.__setattr__(self, "host", host_name("a place's host", self.host))
        for name in ("package", "numa"):
            value = number(f"a place's {name}", getattr(self, name))
            object.__setattr__(self, name, value)
        object.__setattr__(self, "cpus", numbers("a place's cpus", self.cpus))
        if self.machine != "":
            machine = host_name("a place's machine", self.machine)
            object.__setattr__(self, "machine", machine)
        if not isinstance(self.source, str) or self.source not in SOURCES:
            raise refused(
                "a place's source", self.source, f"one of {', '.join(map(repr, SOURCES))}"
            )


@dataclass(frozen=True)
class Topology:
    """The places of ranks 0, 1, ..., the links of levels, and of pairs that differ from them.

    A value: :meth:`edited` makes another one. ``links`` has those of ``LEVELS`` that were measured
    or given; ``pairs`` the links between two ranks, the lower first.

    Raises:
        InvalidArgumentError: there is no rank, no such level, no such pair, or what is given is no
            :class:`Place` or :class:`Link`.
    """

    places: tuple[Place, ...]
    links: Mapping[str, Link] = field(default_factory=dict)
    pairs: Mapping[tuple[int, int], Link] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check, and keep copies that nobody can change."""
        places = tuple(members("places", self.places, Place, "the place of each rank"))
        if not places:
            raise InvalidArgumentError("a topology needs the place of one rank at least")
        links = {
            _check_level(level): member(f"links[{level!r}]", link, Link)
            for level, link in mapping("links", self.links, "levels to links").items()
        }
        pairs = {
            _check_pair(pair, len(places)): member(f"pairs[{pair!r}]", link, Link)
            for pair, link in mapping("pairs", self.pairs, "pairs of ranks to links").items()
        }
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "links", MappingProxyType(links))
        object.__setattr__(self, "pairs", MappingProxyType(pairs))

    def __hash__(self) -> int:
        """Return what equal topologies have in common."""
        return hash((self.places, frozenset(self.links.items()), frozenset(self.pairs.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it as what it was made of."""
        return Topology, (self.places, dict(self.links), dict(self.pairs))

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
        level = self.level(a, b)
        own = self.pairs.get((min(a, b), max(a, b)))
        return own if own is not None else self.links.get(level)

    def groups(self, level: str) -> list[list[int]]:
        """Return the ranks that meet on this level or a nearer one, by their lowest rank."""
        depth = LEVELS.index(_check_level(level))
        rooms: dict[tuple[Any, ...], list[int]] = {}
        for rank, place in enumerate(self.places):
            whole = (place.host, place.package, place.numa)
            rooms.setdefault(whole[: 3 - depth], []).append(rank)
        return list(rooms.values())

    def machines(self) -> list[list[int]]:
        """Return the ranks whose CPUs are those of one machine, by their lowest rank."""
        found: dict[str, list[int]] = {}
        for rank, place in enumerate(self.places):
            found.setdefault(place.machine or place.host, []).append(rank)
        return list(found.values())

    def cores(self, ranks: Sequence[int]) -> int:
        """Return how many CPUs ranks of one machine have between them; 0: not known."""
        cpus = [self._place(rank).cpus for rank in numbers("cores: ranks", ranks)]
        return len(set().union(*cpus)) if all(cpus) else 0

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
        for rank, place in _given("places", places, "ranks to places").items():
            self._place(rank)
            moved[rank] = place
        return replace(
            self,
            places=tuple(moved),
            links={**self.links, **_given("links", links, "levels to links")},
            pairs={**self.pairs, **_given("pairs", pairs, "pairs of ranks to links")},
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a JSON file."""
        from collectives.topology.files import text_of

        write_whole(path, text_of(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Topology:
        """Read what :meth:`save` wrote.

        Raises:
            InvalidArgumentError: the file holds something else; the text says what.
        """
        from collectives.topology.files import LONGEST, topology_in

        with open(path, "rb") as file:
            return topology_in(file.read(LONGEST + 1), str(path))

    @staticmethod
    def of_gpus(host: str | None = None) -> Topology:
        """Return what links the GPUs of this machine, as NVML tells: rank i is GPU i.

        GPUs that are joined by NVLinks have a link of their own; where all lead to NVSwitches, all
        levels have the ports to these, else those of PCI Express. Speeds are what NVML says,
        ``alpha`` is a guess: 1 us for NVLink, 2 us else. ``host`` names the machine otherwise.

        Raises:
            UnsupportedError: there is no NVML (``pip install nvidia-ml-py``), driver or GPU.
        """
        from collectives.topology.gpus import topology_of_gpus
        from collectives.topology.probe import own_host

        return topology_of_gpus(own_host() if host is None else host)

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
        known = integer(rank)
        if known is None or not 0 <= known < self.size:
            raise InvalidArgumentError(f"rank {shown(rank)} is none of {self.size}, from 0 on")
        return self.places[known]


def _given(what: str, value: Mapping[Any, T] | None, wanted: str) -> Mapping[Any, T]:
    return {} if value is None else mapping(what, value, wanted)


def _check_level(level: str) -> str:
    if level not in LEVELS:
        raise InvalidArgumentError(f"{shown(level)} is no level: it is one of {', '.join(LEVELS)}")
    return level


def _check_pair(pair: tuple[int, int], size: int) -> tuple[int, int]:
    ranks = [integer(rank) for rank in pair] if isinstance(pair, tuple) else []
    known = [rank for rank in ranks if rank is not None]
    if not (len(known) == len(ranks) == 2 and 0 <= known[0] < known[1] < size):
        raise InvalidArgumentError(
            f"pairs has {shown(pair)}, which is no pair of {size} ranks, the lower first"
        )
    return known[0], known[1]
