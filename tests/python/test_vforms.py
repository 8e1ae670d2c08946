# SPDX-License-Identifier: Apache-2.0
"""Parts of unequal length, drawn at random, against NumPy; what ranks are told that disagree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from collectives.errors import MismatchError
from collectives.lengths import exchanged, joined
from tests.oracle import differs

Comms = list[cl.Communicator]
SIZES = (1, 2, 3, 4, 5, 8)
DTYPES = ("float32", "float64", "int32", "uint8")
EXAMPLES = settings(max_examples=25, deadline=None)

lengths = st.one_of(st.just(0), st.integers(0, 9), st.integers(900, 1100))


@pytest.fixture(scope="module", params=SIZES, ids=lambda p: f"p={p}")
def comms(request: pytest.FixtureRequest) -> Iterator[Comms]:
    made = cl.local(request.param, timeout=30)
    yield made
    for comm in made:
        comm.close()


def rows(n: int, width: int, dtype: str, seed: int) -> npt.NDArray[Any]:
    """Return an array of shape (n, width) whose numbers tell where they come from."""
    return ((np.arange(n * width) * 7 + 31 * seed) % 101).astype(dtype).reshape(n, width)


def cut(x: npt.NDArray[Any], counts: list[int]) -> list[npt.NDArray[Any]]:
    """Return the parts of the given lengths."""
    return np.split(x, np.cumsum(counts)[:-1])


def drawn(data: st.DataObject, p: int) -> tuple[list[int], int, str, int]:
    """Draw the lengths of p parts, the length of a row, a dtype and a root."""
    counts = data.draw(st.lists(lengths, min_size=p, max_size=p), "counts")
    width, dtype = data.draw(st.integers(0, 3), "width"), data.draw(st.sampled_from(DTYPES))
    return counts, width, dtype, data.draw(st.integers(0, p - 1), "root")


@EXAMPLES
@given(data=st.data())
def test_parts_are_joined(comms: Comms, threads: Any, data: st.DataObject) -> None:
    counts, width, dtype, root = drawn(data, len(comms))
    told = counts if data.draw(st.booleans(), "told") else None
    parts = [rows(n, width, dtype, rank) for rank, n in enumerate(counts)]
    wanted = np.concatenate(parts)

    def work(comm: cl.Communicator) -> list[Any]:
        mine = parts[comm.rank].copy()
        out = np.empty_like(wanted)
        got = comm.gatherv(mine, told, out, root=root)
        here = got is out if comm.rank == root else got is None
        return [
            differs(comm.allgatherv(mine, told), wanted),
            None if here else "gatherv returned something else",
            differs(out, wanted) if comm.rank == root else None,
            differs(mine, parts[comm.rank]),
        ]

    assert threads(comms, work) == [[None] * 4] * len(comms)


@EXAMPLES
@given(data=st.data())
def test_vectors_are_split(comms: Comms, threads: Any, data: st.DataObject) -> None:
    counts, width, dtype, root = drawn(data, len(comms))
    whole = [rows(sum(counts), width, dtype, rank) for rank in range(len(comms))]
    scattered = cut(whole[root], counts)
    reduced = cut(np.max(whole, axis=0), counts)

    def work(comm: cl.Communicator) -> list[Any]:
        x, rank = whole[comm.rank].copy(), comm.rank
        part = comm.scatterv(x if rank == root else scattered[rank] * 0, counts, root=root)
        back = comm.gatherv(part, root=root)
        return [
            differs(part, scattered[rank]),
            differs(back, whole[root]) if rank == root else None,
            differs(comm.reduce_scatterv(x, counts, op="max"), reduced[rank]),
            differs(x, whole[rank]),
        ]

    assert threads(comms, work) == [[None] * 4] * len(comms)


@EXAMPLES
@given(data=st.data())
def test_blocks_are_exchanged(comms: Comms, threads: Any, data: st.DataObject) -> None:
    p = len(comms)
    table = data.draw(st.lists(st.lists(lengths, min_size=p, max_size=p), min_size=p, max_size=p))
    form = data.draw(st.sampled_from(["row", "row and column", "table"]), "form")
    width, dtype = data.draw(st.integers(1, 3), "width"), data.draw(st.sampled_from(DTYPES))
    blocks = [cut(rows(sum(row), width, dtype, rank), row) for rank, row in enumerate(table)]

    def work(comm: cl.Communicator) -> list[Any]:
        rank = comm.rank
        x = np.concatenate(blocks[rank])
        column = [row[rank] for row in table]
        wanted = np.concatenate([sent[rank] for sent in blocks])
        send = table if form == "table" else table[rank]
        got = comm.alltoallv(x, send, column if form == "row and column" else None)
        back = comm.alltoallv(got, column, table[rank], np.empty_like(x))
        return [differs(got, wanted), differs(back, x)]

    assert threads(comms, work) == [[None] * 2] * p


@EXAMPLES
@given(rows_each=st.integers(0, 400), width=st.integers(1, 3), dtype=st.sampled_from(DTYPES))
def test_equal_parts_are_exchanged_alike(
    comms: Comms, threads: Any, rows_each: int, width: int, dtype: str
) -> None:
    p = len(comms)
    whole = np.stack([rows(p * rows_each, width, dtype, rank) for rank in range(p)])
    transposed = whole.reshape(p, p, rows_each, width).swapaxes(0, 1).reshape(whole.shape)

    def work(comm: cl.Communicator) -> list[Any]:
        x = whole[comm.rank].copy()
        apart = comm.alltoall(x, np.empty_like(x))
        unequal = comm.alltoallv(x, [rows_each] * p)
        in_place = comm.alltoall(x)
        return [differs(each, transposed[comm.rank]) for each in (apart, unequal, in_place, x)]

    assert threads(comms, work) == [[None] * 4] * p


def test_parts_of_many_tiles(comms: Comms, threads: Any) -> None:
    p = len(comms)
    counts = [400_003 if rank == p // 2 else 5 * rank for rank in range(p)]
    parts = [rows(n, 1, "float64", rank) for rank, n in enumerate(counts)]
    whole = np.concatenate(parts)

    def work(comm: cl.Communicator) -> list[Any]:
        rank = comm.rank
        blocks = [parts[rank]] * p
        received = comm.alltoallv(np.concatenate(blocks), [counts[rank]] * p)
        scattered = comm.scatterv(whole if rank == 0 else parts[rank] * 0, counts)
        gathered = comm.gatherv(parts[rank], counts)
        return [
            differs(comm.allgatherv(parts[rank]), whole),
            differs(received, whole),
            differs(scattered, parts[rank]),
            differs(comm.reduce_scatterv(whole, counts, op="min"), parts[rank]),
            differs(gathered, whole) if rank == 0 else gathered,
        ]

    assert threads(comms, work) == [[None] * 5] * p


def told(comms: Comms, threads: Any, call: Any) -> tuple[str, int]:
    """Make a call that all ranks must refuse in the same words; return these and who is at fault.

    The communicator must work on.
    """

    def work(comm: cl.Communicator) -> tuple[str, int | None]:
        with pytest.raises(MismatchError) as caught:
            call(comm)
        assert comm.allgatherv(np.full(1, comm.rank)).tolist() == list(range(comm.size))
        return str(caught.value), caught.value.rank

    answers = threads(comms, work)
    assert len(set(answers)) == 1
    return answers[0][0], answers[0][1]


@EXAMPLES
@given(data=st.data())
def test_all_are_told_of_a_contradiction(comms: Comms, threads: Any, data: st.DataObject) -> None:
    p = len(comms)
    table = data.draw(st.lists(st.lists(lengths, min_size=p, max_size=p), min_size=p, max_size=p))
    sender, receiver = data.draw(st.tuples(*[st.integers(0, p - 1)] * 2), "who")
    sent = table[sender][receiver]

    def call(comm: cl.Communicator) -> None:
        column = [row[comm.rank] for row in table]
        if comm.rank == receiver:
            column[sender] += 1
        comm.alltoallv(np.zeros(sum(table[comm.rank])), table[comm.rank], column)

    words = (
        f"alltoallv: rank {receiver} expects {sent + 1} from rank {sender} (recv_counts[{sender}])"
        f", which sends it {sent} (send_counts[{receiver}])"
    )
    text, culprit = told(comms, threads, call)
    assert text.startswith(words)
    assert culprit == receiver


def test_all_are_told_of_an_out_without_room(comms: Comms, threads: Any) -> None:
    p = len(comms)
    last = p - 1
    calls = {
        "allgatherv": lambda c, out: c.allgatherv(np.ones(2), None, out),
        "gatherv": lambda c, out: c.gatherv(np.ones(2), None, out, root=last),
        "alltoallv": lambda c, out: c.alltoallv(np.ones(2 * p), [2] * p, out=out),
    }
    for name, call in calls.items():
        text, culprit = told(
            comms, threads, lambda c, call=call: call(c, np.empty(2 * p + (c.rank == last)))
        )
        assert text.startswith(f"{name}: out of rank {last} has {2 * p + 1} rows, but {2 * p}")
        assert "give an out with as many, or none" in text
        assert culprit == last


def test_lengths_take_one_more_collective_only_where_they_are_not_told(threads: Any) -> None:
    pair = cl.local(2, timeout=10)
    x = np.ones(2)
    for calls, begun in (
        (lambda c: c.allgatherv(x, [2, 2]), 1),
        (lambda c: c.allgatherv(x), 2),
        (lambda c: c.gatherv(x), 2),
        (lambda c: c.alltoallv(x, [1, 1]), 2),
        (lambda c: c.alltoallv(x, [1, 1], [1, 1]), 2),
        (lambda c: c.alltoallv(x, [[1, 1], [1, 1]]), 1),
        (lambda c: c.scatterv(x, [1, 1]) if c.rank == 0 else c.scatterv(x[:1], [1, 1]), 1),
    ):
        before = pair[0].sequence
        threads(pair, calls)
        assert pair[0].sequence - before == begun


def test_the_time_of_a_call_bounds_the_finding_of_lengths() -> None:
    pair = cl.local(2, timeout=20)
    with pytest.raises(cl.CollectiveTimeoutError, match=r"gave up after 0\.1 s") as caught:
        pair[0].gatherv(np.ones(1), timeout=0.1)  # rank 1 makes no call
    assert caught.value.rank == 1


def test_judgement_of_lengths_by_hand() -> None:
    assert joined("gatherv", [[3, -1], [0, -1], [2, 5]]) == [3, 0, 2]
    assert exchanged("alltoallv", [[1, 2, -1, -1, -1], [3, 4, 2, 4, 6]]) == [[1, 2], [3, 4]]
    with pytest.raises(MismatchError, match="rank 1 expects 1 from rank 0"):
        exchanged("alltoallv", [[1, 2, -1, -1, -1], [3, 4, 1, 4, 6]])
    with pytest.raises(MismatchError, match="out of rank 0 has 5 rows, but 4 arrive there"):
        exchanged("alltoallv", [[1, 2, -1, -1, 5], [3, 4, -1, -1, -1]])
