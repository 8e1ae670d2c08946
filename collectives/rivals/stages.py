# SPDX-License-Identifier: Apache-2.0
"""Collectives in two levels, NCCL within hosts and ours between them: a rank's stages.

Pure: no rank, array or library is needed to tell the stages, so tests run those of all ranks on
arrays of the host. Rank ``i`` of a host meets rank ``i`` of the others, so that a host's ranks use
its links to other hosts at once, each for its part of the vector. Where hosts have different
numbers of ranks, there are as many such columns as the smallest has, and the other ranks take part
within their host only. So reduce_scatter within, allreduce between and allgather within are an
allreduce: M. Cho et al., "BlueConnect", SysML 2019, of two dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Seat(NamedTuple):
    """Where a rank is: of so many ``hosts`` on number ``host``, there of so many ``ranks``.

    The first ``columns`` ranks of each host meet those of the others.
    """

    hosts: int
    ranks: int
    host: int
    rank: int
    columns: int


class Piece(NamedTuple):
    """Elements of the call's "source" or "target", or of "scratch" memory of this rank."""

    array: str
    start: int
    elements: int


class Inside(NamedTuple):
    """One call of NCCL among the ranks of a host.

    ``elements`` are NCCL's (those of each rank, where parts are gathered or scattered); ``peer`` is
    the root, or whom a message is for. Those of one stage are one group of NCCL.
    """

    function: str
    source: Piece | None
    target: Piece | None
    elements: int
    peer: int = 0


class Across(NamedTuple):
    """One collective of ours among the ranks with this number on all hosts; ``root`` is a host."""

    kind: str
    source: Piece
    target: Piece | None
    root: int = 0


Stage: TypeAlias = tuple[Inside, ...] | Across


def stages(kind: str, seat: Seat, elements: int, root: tuple[int, int] = (0, 0)) -> list[Stage]:
    """Return the stages of a call of this rank, whose source has so many ``elements``.

    ``root`` is the number of its host, and its number there. Of one stage all ranks that have it
    make the same call; a stage without a call is left out. Those of IN_ORDER want hosts with as
    many ranks each.
    """
    made = _STAGES[kind](seat, elements, root)
    return [stage for stage in made if isinstance(stage, Across) or stage]


def scratch(made: list[Stage]) -> int:
    """Return the elements of scratch memory that stages use."""
    calls = [c for stage in made for c in ([stage] if isinstance(stage, Across) else stage)]
    pieces = [piece for call in calls for piece in (call.source, call.target) if piece]
    return max((one.start + one.elements for one in pieces if one.array == "scratch"), default=0)


def _share(array: str, elements: int, columns: int, rank: int) -> Piece:
    """Return a rank's part of a vector: the last of the columns has the rest, others nothing."""
    each = elements // columns
    if rank >= columns:
        return Piece(array, 0, 0)
    return Piece(array, rank * each, each + (elements % columns if rank == columns - 1 else 0))


def _part(array: str, seat: Seat, elements: int) -> Piece:
    return _share(array, elements, seat.columns, seat.rank)


def _parts(array: str, seat: Seat, elements: int) -> list[tuple[int, Piece]]:
    """Return who has which part of a vector, but for empty ones."""
    every = [(rank, _share(array, elements, seat.columns, rank)) for rank in range(seat.columns)]
    return [(rank, piece) for rank, piece in every if piece.elements]


def _reduced(seat: Seat, elements: int, part: Piece) -> tuple[Inside, ...]:
    """Sum what the host's ranks have, each its ``part``."""
    if seat.ranks > seat.columns:
        return tuple(
            Inside("ncclReduce", one, part if rank == seat.rank else None, one.elements, rank)
            for rank, one in _parts("source", seat, elements)
        )
    each, last = elements // seat.ranks, seat.ranks - 1
    body, rest = each * seat.ranks, elements % seat.ranks
    calls = []
    if each:
        to = part._replace(elements=each)
        calls.append(Inside("ncclReduceScatter", Piece("source", 0, body), to, each))
    if rest:
        to = Piece(part.array, part.start + each, rest)
        end = to if seat.rank == last else None
        calls.append(Inside("ncclReduce", Piece("source", body, rest), end, rest, last))
    return tuple(calls)


def _gathered(seat: Seat, elements: int) -> tuple[Inside, ...]:
    """Give all of the host's ranks the target, of which each has its part."""
    if seat.ranks > seat.columns:
        return tuple(
            Inside("ncclBroadcast", one, one, one.elements, rank)
            for rank, one in _parts("target", seat, elements)
        )
    each, last = elements // seat.ranks, seat.ranks - 1
    body, rest = each * seat.ranks, elements % seat.ranks
    calls = []
    if each:
        own = Piece("target", seat.rank * each, each)
        calls.append(Inside("ncclAllGather", own, Piece("target", 0, body), each))
    if rest:
        tail = Piece("target", body, rest)
        calls.append(Inside("ncclBroadcast", tail, tail, rest, last))
    return tuple(calls)


def _across(kind: str, source: Piece, target: Piece | None, root: int = 0) -> list[Stage]:
    return [Across(kind, source, target, root)] if source.elements else []


def _allreduce(seat: Seat, elements: int, root: tuple[int, int]) -> list[Stage]:
    own = _part("target", seat, elements)
    return [
        _reduced(seat, elements, own),
        *_across("allreduce", own, own),
        _gathered(seat, elements),
    ]


def _broadcast(seat: Seat, elements: int, root: tuple[int, int]) -> list[Stage]:
    own = _part("target", seat, elements)
    given: tuple[Inside, ...] = ()
    if seat.host == root[0]:
        given = _with_root(seat, elements, root[1], ("ncclSend", "source"), ("ncclRecv", own))
    begin = own._replace(array="source") if (seat.host, seat.rank) == root else own
    return [given, *_across("broadcast", begin, own, root[0]), _gathered(seat, elements)]


def _reduce(seat: Seat, elements: int, root: tuple[int, int]) -> list[Stage]:
    own = _part("target", seat, elements)
    part = Piece("scratch", 0, own.elements)
    end: Piece | None = None
    taken: tuple[Inside, ...] = ()
    if seat.host == root[0]:
        end = own if seat.rank == root[1] else part
        taken = _with_root(seat, elements, root[1], ("ncclRecv", "target"), ("ncclSend", part))
    return [_reduced(seat, elements, part), *_across("reduce", part, end, root[0]), taken]


def _with_root(
    seat: Seat, elements: int, root: int, there: tuple[str, str], here: tuple[str, Piece]
) -> tuple[Inside, ...]:
    """Exchange parts with a host's root: what it calls, on which array, and what the others do."""
    if seat.rank != root:
        return _messages([(root, here[1])], here[0])
    parts = _parts(there[1], seat, elements)
    return _messages([(rank, part) for rank, part in parts if rank != root], there[0])


def _messages(of_peers: list[tuple[int, Piece]], function: str) -> tuple[Inside, ...]:
    sends = function == "ncclSend"
    return tuple(
        Inside(function, part if sends else None, None if sends else part, part.elements, peer)
        for peer, part in of_peers
        if part.elements
    )


def _allgather(seat: Seat, elements: int, root: tuple[int, int]) -> list[Stage]:
    if not elements:
        return []
    column = Piece("scratch", 0, seat.hosts * elements)
    inside = tuple(
        Inside("ncclAllGather", block, row, elements)
        for block, row in _by_hosts(seat, elements, "target")
    )
    return [Across("allgather", Piece("source", 0, elements), column), inside]


def _reduce_scatter(seat: Seat, elements: int, root: tuple[int, int]) -> list[Stage]:
    each = elements // (seat.hosts * seat.ranks)
    if not each:
        return []
    column = Piece("scratch", 0, seat.hosts * each)
    inside = tuple(
        Inside("ncclReduceScatter", row, block, each)
        for block, row in _by_hosts(seat, each, "source")
    )
    return [inside, Across("reduce_scatter", column, Piece("target", 0, each))]


def _by_hosts(seat: Seat, each: int, array: str) -> list[tuple[Piece, Piece]]:
    """Return, for each host, this rank's block in scratch memory, and those of its ranks."""
    row = seat.ranks * each
    return [
        (Piece("scratch", host * each, each), Piece(array, host * row, row))
        for host in range(seat.hosts)
    ]


_STAGES: dict[str, Callable[[Seat, int, tuple[int, int]], list[Stage]]] = {
    "allreduce": _allreduce,
    "reduce_scatter": _reduce_scatter,
    "allgather": _allgather,
    "broadcast": _broadcast,
    "reduce": _reduce,
}
# Their blocks lie host by host, so the ranks must be numbered so, and hosts have as many.
IN_ORDER = ("reduce_scatter", "allgather")
KINDS = tuple(_STAGES)
