# SPDX-License-Identifier: Apache-2.0
"""Hierarchical algorithms, for ranks on sockets of hosts of racks: :func:`product`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from collectives._ffi import check, ffi, lib
from collectives.defined import DefinedForOne, define, unpacked
from collectives.errors import InvalidArgumentError
from collectives.names import KINDS, choose_from, integer

PHASES = {
    "ring": lib.COLL_PHASE_RING,
    "circulant": lib.COLL_PHASE_CIRCULANT,
    "direct": lib.COLL_PHASE_DIRECT,
    "halving": lib.COLL_PHASE_HALVING,
    "binomial": lib.COLL_PHASE_BINOMIAL,
}
LED = ("broadcast", "reduce", "barrier")
PAPER = {
    False: "Cho, Finkler, Serrano, Kung & Hunter, BlueConnect: Decomposing All-Reduce for Deep "
    "Learning on Heterogeneous Network Hierarchy, MLSys 2019",
    True: "Luo et al., HAN: a Hierarchical AutotuNed Collective Communication Framework, "
    "CLUSTER 2020",
}

BUCKETS = (
    "Jain & Sabharwal, Optimal Bucket Algorithms for Large MPI Collectives on Torus "
    "Interconnects, ICS 2010"
)

# Ranks, in lists of one or more levels: [[0, 1], [2, 3]].
Levels = Sequence[Any]


@dataclass(frozen=True)
class Product(DefinedForOne):
    """A hierarchical algorithm, made by :func:`product`.

    ``p`` is its number of ranks. ``groupings`` says for each rank which group it is in, the finest
    grouping first; ``phases`` how the members of a group talk, the nearest level first.
    """

    kind: str
    name: str
    p: int
    groupings: tuple[tuple[int, ...], ...]
    phases: tuple[str, ...]
    far_first: bool = False
    both_ways: bool = False
    same_bits: bool = True

    @property
    def paper(self) -> str:  # type: ignore[override]
        """Where the method comes from."""
        return BUCKETS if self.both_ways else PAPER[self.kind in LED]

    @property
    def summary(self) -> str:  # type: ignore[override]
        """What it is, in one line."""
        inner = [f"{len(set(grouping))} groups" for grouping in self.groupings]
        order = ", the farthest first" if self.far_first else ""
        if self.both_ways:
            order = ", and the other way for half of the vector"
        shape = " in ".join([f"{self.p} ranks", *inner])
        return f"{shape}: {', then '.join(self.phases)}{order}."

    def encoded(self, p: int, root: int = 0) -> list[int]:
        """Return the schedule of all ranks as numbers (docs/encoding.md)."""
        self._check_fits(p)
        request, _alive = self._asked(root)
        return unpacked(lib.coll_product_schedule, request)

    def prove(self, words: list[int], root: int, in_place: bool) -> Any:
        """Return what the prover finds, who also compares its cost with what is claimed."""
        request, _alive = self._asked(root)
        found = ffi.new("coll_proof *")
        check(lib.coll_product_prove(request, in_place, found))
        return found

    def between(self, level: int = -1, root: int = 0) -> tuple[float, float]:
        """Return what a group sends and receives over its border, in vectors.

        Of the group with the most of it, among those that talk at this level: at the last, -1, the
        largest ones, hosts for instance.
        """
        place = level + len(self.phases) if level < 0 else level
        request, _alive = self._asked(root)
        sent, received = ffi.new("double *"), ffi.new("double *")
        check(lib.coll_product_between(request, place, sent, received))
        return float(sent[0]), float(received[0])

    def _asked(self, root: int) -> tuple[Any, Any]:
        """Return a ``coll_product``, and what must live as long."""
        request = ffi.new("coll_product *")
        request.size = ffi.sizeof("coll_product")
        request.kind, request.p, request.root = KINDS[self.kind], self.p, root
        groups = ffi.new("int32_t[]", [g for grouping in self.groupings for g in grouping])
        phases = ffi.new("int32_t[]", [PHASES[phase] for phase in self.phases])
        request.levels, request.groups, request.phases = len(self.phases), groups, phases
        request.far_first = 2 if self.both_ways else int(self.far_first)
        return request, (groups, phases)


def product(
    kind: str,
    levels: Levels,
    phases: str | Sequence[str] | None = None,
    *,
    name: str = "product",
    far_first: bool = False,
    both_ways: bool = False,
) -> Product:
    """Make a hierarchical algorithm: ranks of a host talk among each other, and hosts with hosts.

    Args:
        kind: allreduce, reduce_scatter or allgather, where all ranks of a host talk to other
            hosts; broadcast, reduce or barrier, where one of each does.
        levels: how ranks lie, in lists: ``[[0, 1], [2, 3]]`` are two hosts, ``[[[0, 1], [2]],
            [[3]]]`` two hosts of one and two sockets. Hosts may have any numbers of ranks, and
            these any numbers; each is named once.
        phases: how the members of a group talk: a word for each level, the nearest ranks' first,
            or one for all. "direct" (one round), "ring", "circulant" or "halving" (groups of a
            power of two); of a broadcast, reduce or barrier "direct" or "binomial". By default
            direct among the nearest, and circulant or binomial between others.
        name: what ``algorithm=`` calls it.
        far_first: begin with the farthest level; all groups of a level must have one size. By
            default the nearest begins, so that hosts exchange the least there can be.
        both_ways: of an allreduce, begin with the nearest level for one half of the vector and
            with the farthest for the other; all groups of a level must have one size.

    Like one of :func:`algorithm` it is proved before its first use; all ranks define the same.
    Raises InvalidArgumentError or UnsupportedError where kind, levels and phases do not fit.
    """
    choose_from(kind, KINDS, "collective")
    if far_first and both_ways:
        raise InvalidArgumentError(
            "product: far_first and both_ways are given: give one, as both_ways is either order"
        )
    p, groupings = _groupings(levels)
    made = Product(
        kind=kind,
        name=name,
        p=p,
        groupings=groupings,
        phases=_phases(kind, phases, len(groupings) + 1),
        far_first=bool(far_first),
        both_ways=bool(both_ways),
    )
    made.encoded(p)
    return define(made)


def _phases(kind: str, given: object, depth: int) -> tuple[str, ...]:
    if given is None:
        far = "binomial" if kind in LED else "circulant"
        return ("direct", *[far] * (depth - 1))
    if isinstance(given, str):
        given = (given,) * depth
    if not isinstance(given, Sequence) or len(given) != depth:
        raise InvalidArgumentError(
            f"product: phases is {given!r}: give {depth} words, one for each level, or one for all"
        )
    return tuple(choose_from(phase, PHASES, "product: phase") for phase in given)


def _groupings(levels: object) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """Return the number of ranks, and which group each is in, the finest grouping first."""
    paths = dict[int, tuple[int, ...]]()
    for rank, path in _leaves(levels, ()):
        if rank in paths:
            raise _wrong(levels, f"rank {rank} is named twice")
        paths[rank] = path
    p = len(paths)
    if p == 0 or sorted(paths) != list(range(p)):
        raise _wrong(levels, "ranks are numbered from 0, none left out")
    for (one, path), (other, another) in pairwise(sorted(paths.items())):
        if len(path) != len(another):
            raise _wrong(levels, f"ranks {one} and {other} lie in lists of different depths")
    groupings = []
    for depth in range(len(paths[0]), 0, -1):
        groups = dict[tuple[int, ...], int]()
        labels = (groups.setdefault(paths[r][:depth], len(groups)) for r in range(p))
        groupings.append(tuple(labels))
    return p, tuple(groupings)


def _leaves(levels: object, path: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield every rank with the places of the lists that it is in, but for the outermost."""
    if isinstance(levels, str) or not isinstance(levels, Sequence | range):
        raise _wrong(levels, "this is no list")
    if not len(levels):
        raise _wrong(levels, "a list is empty")
    for place, member in enumerate(levels):
        rank = integer(member)
        if rank is not None:
            yield rank, path
        else:
            yield from _leaves(member, (*path, place))


def _wrong(levels: object, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"product: levels: {levels!r}: {why}: give lists of ranks, such as [[0, 1], [2, 3]]"
    )
