# SPDX-License-Identifier: Apache-2.0
"""The short way of unequal parts: the long way's results, objects and errors, whatever it is given.

As in test_quick.py a call with a time-out takes the long way.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives import plain_calls, quick_parts
from collectives.errors import MismatchError
from tests.python.ranks import on_ranks
from tests.python.test_quick import NOT_PLAIN, both, read_only, values

P = 3
COUNTS = [[2, 0, 3], [1, 1, 1], [0, 0, 0], [0, 7, 0], [300, 1, 2], [40, 4000, 9]]
ROWS: list[tuple[int, ...]] = [(), (2,), (1, 5), (0,)]

# Each with the lengths of all parts, and the arrays of a rank: what it hands in, and gets.
Call = Callable[..., Any]
CALLS: dict[str, Call] = {
    "allgatherv": lambda c, x, out, counts, **how: c.allgatherv(x, counts, out, **how),
    "gatherv": lambda c, x, out, counts, **how: c.gatherv(x, counts, out, root=1, **how),
    "scatterv": lambda c, x, out, counts, **how: c.scatterv(x, counts, out, root=1, **how),
    "reduce_scatterv": lambda c, x, out, counts, **how: c.reduce_scatterv(
        x, counts, out, op="max", **how
    ),
    "alltoallv": lambda c, x, out, counts, **how: c.alltoallv(x, counts, None, out, **how),
}


def lengths_of(name: str, counts: list[int]) -> Any:
    """Return what a call takes for parts of these lengths; all send a rank as much as its length,
    and as many rows more as they are ranks."""
    return [[n + s for n in counts] for s in range(P)] if name == "alltoallv" else counts


def sides(name: str, counts: list[int], rank: int) -> tuple[int, int]:
    """Return how many rows a rank hands in, and gets."""
    total, own = sum(counts), counts[rank]
    if name == "alltoallv":
        return total + P * rank, P * own + sum(range(P))
    return (own, total) if "gather" in name else (total, own)


def arrays_of(name: str, comm: cl.Communicator, counts: list[int], row: tuple[int, ...]) -> Any:
    given, got = sides(name, counts, comm.rank)
    x = values(comm, (given, *row), float)
    if name == "scatterv" and comm.rank != 1:
        x = values(comm, (got, *row), float)
    return x, np.zeros((got, *row))


@pytest.fixture
def statuses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by what the short way returns: -1 where it has done nothing."""
    seen: list[int] = []
    original = plain_calls.run_plain_parts

    def run_plain_parts(*arguments: Any) -> int:
        seen.append(original(*arguments))
        return seen[-1]

    monkeypatch.setattr(quick_parts, "run_plain_parts", run_plain_parts)
    return seen


@pytest.mark.parametrize("kind", [list, tuple, np.array])
@pytest.mark.parametrize("name", CALLS)
def test_all_lengths_and_rows(name: str, kind: Callable[[Any], Any], statuses: list[int]) -> None:
    def work(comm: cl.Communicator) -> None:
        for counts in COUNTS:
            given = lengths_of(name, counts)
            given = list(map(kind, given)) if name == "alltoallv" else kind(given)
            for row in ROWS:
                x, out = arrays_of(name, comm, counts, row)
                for there in (out, None):
                    both(
                        comm,
                        lambda c, x, o, **how: CALLS[name](c, x, o, given, **how),  # noqa: B023
                        lambda: (x.copy(), None if there is None else there.copy()),  # noqa: B023
                    )

    on_ranks(P, work)
    assert statuses
    assert set(statuses) == {0}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("what", ["strided", "columns", "unaligned", "of a subclass"])
def test_what_is_not_plain(name: str, what: str) -> None:
    """One rank takes the long way, the others the short one."""
    counts = [2, 2, 2]

    def work(comm: cl.Communicator) -> None:
        plain = arrays_of(name, comm, counts, (2,))
        given = lengths_of(name, counts)
        call = lambda c, x, o, **how: CALLS[name](c, x, o, given, **how)  # noqa: E731
        x, out = plain
        strange = NOT_PLAIN[what] if comm.rank == 1 else lambda x: x
        both(comm, call, lambda: (strange(x.copy()), out.copy()))
        both(comm, call, lambda: (x.copy(), strange(out.copy())))

    on_ranks(P, work)


NEARLY = [3, 2, 2]  # of which some ranks see nothing: those would wait for the others
TWO = 2
WRONG: list[Any] = [
    [2, 2], [2, 2, 2, 2], [2, -2, 2], [2, 2.0, 2], [2, True, 2], TWO, None, "222", [2, "2", 2],
    [2**63, 0, 0], [2**70, 0, 0], np.array([2, 2, -2]), np.array([[2, 2, 2]]), {2, 3}, NEARLY,
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CALLS if name != "allgatherv"])
@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_wrong_lengths(name: str, wrong: Any) -> None:
    """All ranks are told what the long way says, before anything is sent."""

    def work(comm: cl.Communicator) -> None:
        x, out = arrays_of(name, comm, [2, 2, 2], ())
        counts = [wrong] * P if name == "alltoallv" else wrong
        for there in (out, None):
            seen = []
            for how in ({}, {"timeout": 20.0}):
                with pytest.raises(cl.CollectiveError) as caught:
                    CALLS[name](comm, x, there, counts, **how)
                seen.append(str(caught.value))
            assert seen[0] == seen[1]

    # These are calls: of lengths that are not given, of one row.
    asks = (name == "gatherv" and wrong is None) or (name == "alltoallv" and wrong is TWO)
    if not asks and (wrong is not NEARLY or name == "alltoallv"):
        on_ranks(P, work)


def test_an_out_that_does_not_fit() -> None:
    def work(comm: cl.Communicator) -> None:
        for name in ("allgatherv", "reduce_scatterv", "alltoallv"):
            x, right = arrays_of(name, comm, [2, 2, 2], (2,))
            counts = lengths_of(name, [2, 2, 2])
            wrong = [right.astype(np.float32), right[1:], right.reshape(-1), right[:, :1]]
            for out in [*wrong, read_only(right.copy()), right.tolist()]:
                seen = both(
                    comm,
                    lambda c, x, o, **how: CALLS[name](c, x, o, counts, **how),  # noqa: B023
                    lambda: (x, out),  # noqa: B023
                )
                assert isinstance(seen, str), seen

    on_ranks(P, work)


def test_lengths_that_change_in_their_own_list() -> None:
    """A call of as many elements is not taken for the one before."""

    def work(comm: cl.Communicator) -> None:
        counts: Any = np.array([2, 3, 4])
        drawn = random.Random(7)
        for turn in range(300):
            if turn % 3 == 0:
                others = [0, 1, 2]
                drawn.shuffle(others)
                counts[:] = np.array([2, 3, 4])[others]
            mine = np.full(counts[comm.rank], 10.0 * turn + comm.rank)
            wanted = np.repeat(10.0 * turn + np.arange(P), counts)
            assert comm.allgatherv(mine, counts).tolist() == wanted.tolist()
            whole = np.arange(9.0) + turn
            before = int(counts[: comm.rank].sum())
            part = comm.reduce_scatterv(whole, counts)
            assert part.tolist() == (P * whole[before : before + len(mine)]).tolist()

    on_ranks(P, work)


def test_lengths_that_ranks_tell_each_other(statuses: list[int]) -> None:
    def work(comm: cl.Communicator) -> None:
        for turn in range(20):
            n = (turn + comm.rank) % 4
            wanted = [rank for rank in range(P) for _ in range((turn + rank) % 4)]
            out = np.zeros((len(wanted), 2), int) if turn % 2 else None
            joined = comm.allgatherv(np.full((n, 2), comm.rank), None, out)
            assert out is None or joined is out
            assert joined[:, 0].tolist() == wanted
            row = [(turn * comm.rank + d) % 3 for d in range(P)]
            lengths = [(turn * s + comm.rank) % 3 for s in range(P)]
            room = np.zeros(sum(lengths), "f4") if turn % 2 else None
            found = comm.alltoallv(np.full(sum(row), comm.rank, "f4"), row, None, room)
            assert found.tolist() == np.repeat(np.arange(P), lengths).tolist()

    on_ranks(P, work)
    assert len(statuses) == 2 * 20 * P
    assert set(statuses) == {0}


def test_some_ranks_tell_their_lengths_on_the_long_way() -> None:
    def work(comm: cl.Communicator) -> None:
        how: dict[str, Any] = {"timeout": 20.0} if comm.rank == 1 else {}
        x = np.full(comm.rank + 1, comm.rank)
        assert comm.allgatherv(x, **how).tolist() == [0, 1, 1, 2, 2, 2]
        row = [comm.rank] * P
        assert comm.alltoallv(np.full(P * comm.rank, comm.rank), row, **how).tolist() == [1, 2, 2]
        out = np.zeros(7 if comm.rank == 2 else 6, int) if comm.rank else None
        for _ in range(2):
            with pytest.raises(MismatchError, match="out of rank 2 has 7 rows, but 6 arrive there"):
                comm.allgatherv(x, None, out, **how)
        memory = np.zeros(8)
        with pytest.raises(cl.InvalidArgumentError, match="x and out overlap"):
            comm.allgatherv(memory[:2], None, memory[1:7])

    on_ranks(P, work)


def test_ranks_with_other_lengths_are_told_apart() -> None:
    def work(comm: cl.Communicator) -> None:
        counts = [1, 3, 2] if comm.rank == 2 else [2, 2, 2]
        comm.allgatherv(np.zeros(2), [2, 2, 2])
        with pytest.raises(MismatchError, match="other counts per rank"):
            comm.allgatherv(np.zeros(2), counts)

    on_ranks(P, work)
