# SPDX-License-Identifier: Apache-2.0
"""Two levels of NCCL and ours: the stages of all ranks, run on arrays, are the collective."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives.rivals.stages import IN_ORDER, KINDS, Across, Inside, Piece, Seat, Stage, stages
from collectives.rivals.stages import scratch as scratch_of

UNTOUCHED = -1


@dataclass
class Rank:
    """A rank's arrays, and what it has still to do."""

    seat: Seat
    arrays: dict[str, Any]
    todo: list[Stage]
    writes: list[tuple[int, int]] = field(default_factory=list)

    def read(self, piece: Piece) -> Any:
        """Return what lies there, as it is now."""
        found = self.arrays[piece.array][piece.start : piece.start + piece.elements]
        assert len(found) == piece.elements, piece
        return found.copy()

    def write(self, piece: Piece, values: Any) -> None:
        """Put values there."""
        assert len(values) == piece.elements, piece
        self.arrays[piece.array][piece.start : piece.start + piece.elements] = values


def run(ranks: list[Rank]) -> None:
    """Run what all ranks have to do; fail where they would wait for each other."""
    mail: dict[tuple[int, int, int], Any] = {}
    while any(rank.todo for rank in ranks):
        assert any(_messages(rank, mail) for rank in ranks) or _step(ranks), ranks
    assert not mail


def _messages(rank: Rank, mail: dict[tuple[int, int, int], Any]) -> bool:
    """Run a rank's next group where it is one of messages, which are all there."""
    calls: Any = rank.todo[0] if rank.todo else ()
    if isinstance(calls, Across) or {c.function for c in calls} - {"ncclSend", "ncclRecv"}:
        return False
    host, own = rank.seat.host, rank.seat.rank
    for call in calls:
        if call.function == "ncclSend":
            mail.setdefault((host, own, call.peer), rank.read(call.source))
    if not all((host, c.peer, own) in mail for c in calls if c.function == "ncclRecv"):
        return False
    for call in calls:
        if call.function == "ncclRecv":
            rank.write(call.target, mail.pop((host, call.peer, own)))
    rank.todo = rank.todo[1:]
    return bool(calls)


def _step(ranks: list[Rank]) -> bool:
    """Run a stage of one host or one column; tell whether there was one that all came to."""
    for which, across in (("host", False), ("rank", True)):
        for number in range(ranks[0].seat.columns if across else ranks[0].seat.hosts):
            members = [r for r in ranks if getattr(r.seat, which) == number]
            if all(r.todo and isinstance(r.todo[0], Across) == across for r in members):
                heads: list[Any] = [r.todo.pop(0) for r in members]
                (_columns if across else _groups)(members, heads)
                return True
    return False


def _groups(members: list[Rank], heads: list[tuple[Inside, ...]]) -> None:
    """Run a group of NCCL's collectives: sources are read as they were before it."""
    read = [
        [rank.read(c.source) for c in calls if c.source]
        for rank, calls in zip(members, heads, strict=True)
    ]
    for number, alike in enumerate(zip(*heads, strict=True)):
        assert len({(c.function, c.elements, c.peer) for c in alike}) == 1, alike
        for rank, call in zip(members, alike, strict=True):
            result = _result(call, rank.seat.rank, [each[number] for each in read])
            if call.target:
                rank.write(call.target, result)


def _result(call: Inside, rank: int, sources: list[Any]) -> Any:
    """Return what NCCL gives a rank."""
    if call.function == "ncclAllGather":
        assert len(sources[0]) == call.elements
        return np.concatenate(sources)
    if call.function == "ncclBroadcast":
        return sources[call.peer]
    total = np.sum(sources, axis=0)
    if call.function == "ncclReduce":
        return total
    assert call.function == "ncclReduceScatter"
    return total[rank * call.elements : (rank + 1) * call.elements]


def _columns(members: list[Rank], heads: list[Across]) -> None:
    """Run a collective of ours."""
    assert len({(c.kind, c.source.elements, c.root) for c in heads}) == 1, heads
    kind, root, p = heads[0].kind, heads[0].root, len(heads)
    sources = [rank.read(call.source) for rank, call in zip(members, heads, strict=True)]
    for place, (rank, call) in enumerate(zip(members, heads, strict=True)):
        if kind == "reduce":
            assert (place != root) or call.target
        if call.target and not (kind == "reduce" and place != root):
            rank.write(call.target, _of_ours(kind, sources, root, place, p))


def _of_ours(kind: str, sources: list[Any], root: int, place: int, p: int) -> Any:
    if kind == "allgather":
        return np.concatenate(sources)
    if kind == "broadcast":
        return sources[root]
    total = np.sum(sources, axis=0)
    return total.reshape(p, -1)[place] if kind == "reduce_scatter" else total


def expected(kind: str, given: list[Any], rank: int, root: int) -> Any:
    """Return what a rank's target is to hold; None: what it held."""
    if kind == "broadcast":
        return given[root]
    if kind == "allgather":
        return np.concatenate(given)
    total = np.sum(given, axis=0)
    if kind == "reduce":
        return total if rank == root else None
    return total.reshape(len(given), -1)[rank] if kind == "reduce_scatter" else total


def seats(of_host: list[int]) -> list[Seat]:
    """Return those of hosts with so many ranks each."""
    return [
        Seat(len(of_host), ranks, host, rank, min(of_host))
        for host, ranks in enumerate(of_host)
        for rank in range(ranks)
    ]


def made(kind: str, of_host: list[int], elements: int, root: int, in_place: bool) -> None:
    """Run a collective of all ranks and compare."""
    places = seats(of_host)
    p = len(places)
    length = elements * p if kind == "reduce_scatter" else elements
    given = [np.arange(length) * 3 + 1000 * rank for rank in range(p)]
    room = {"reduce_scatter": elements, "allgather": elements * p}.get(kind, elements)
    team = []
    for number, seat in enumerate(places):
        todo = stages(kind, seat, length, (places[root].host, places[root].rank))
        source = given[number].copy()
        target = source if in_place else np.full(room, UNTOUCHED)
        arrays = {"source": source, "target": target}
        arrays["scratch"] = np.full(scratch_of(todo), UNTOUCHED)
        team.append(Rank(seat, arrays, todo))
    run(team)
    for number, rank in enumerate(team):
        wanted = expected(kind, given, number, root)
        if wanted is None:
            wanted = given[number] if in_place else np.full(room, UNTOUCHED)
        np.testing.assert_array_equal(rank.arrays["target"], wanted)
        if not in_place:
            np.testing.assert_array_equal(rank.arrays["source"], given[number])


@given(
    st.sampled_from(KINDS), st.integers(1, 4), st.integers(1, 5), st.integers(0, 23),
    st.integers(0, 19), st.booleans(),
)  # fmt: skip
@settings(max_examples=400, deadline=None)
def test_the_stages_of_all_ranks_are_the_collective(
    kind: str, hosts: int, ranks: int, elements: int, root: int, in_place: bool
) -> None:
    in_place = in_place and kind not in IN_ORDER
    made(kind, [ranks] * hosts, elements, root % (hosts * ranks), in_place)


@given(
    st.sampled_from([kind for kind in KINDS if kind not in IN_ORDER]),
    st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 23),
    st.integers(0, 19), st.booleans(),
)  # fmt: skip
@settings(max_examples=400, deadline=None)
def test_hosts_may_have_different_numbers_of_ranks(
    kind: str, of_host: list[int], elements: int, root: int, in_place: bool
) -> None:
    made(kind, of_host, elements, root % sum(of_host), in_place)


@pytest.mark.parametrize("kind", KINDS)
def test_between_hosts_each_rank_moves_its_part_alone(kind: str) -> None:
    """Of 12 elements among two hosts of four ranks every rank takes three to the other host."""
    length = {"allgather": 3, "reduce_scatter": 24}.get(kind, 12)
    for seat in seats([4, 4]):
        across = [one for one in stages(kind, seat, length) if isinstance(one, Across)]
        assert [one.source.elements for one in across] == [6 if kind == "reduce_scatter" else 3]


def test_what_is_less_than_a_part_each_goes_by_the_last_rank() -> None:
    for number, seat in enumerate(seats([4])):
        across = [one for one in stages("allreduce", seat, 3) if isinstance(one, Across)]
        assert bool(across) == (number == 3)
