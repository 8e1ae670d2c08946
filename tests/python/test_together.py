# SPDX-License-Identifier: Apache-2.0
"""Calls of a group: the same results as one after the other, and handles that always end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks


def values(rank: int, n: int = 8) -> Any:
    return np.arange(n) + 10.0 * rank + 1


def twice(c: cl.Communicator, z: Any) -> None:
    c.allreduce(z)
    c.allreduce(z)


def chain(c: cl.Communicator, z: Any) -> None:
    c.allreduce(z[:3], z[3:6])
    c.allreduce(z[3:6], op="max")
    c.allreduce(z[3:6], z[:3])


def shifted(c: cl.Communicator, z: Any) -> None:
    c.allreduce(z[:5])
    c.allreduce(z[3:])
    c.allreduce(z[:1])


def strided(c: cl.Communicator, z: Any) -> None:
    c.allreduce(z[::2])
    c.allreduce(z[::2])
    c.allreduce(z[::-1])
    c.allreduce(z)


def read_before_it_is_written(c: cl.Communicator, z: Any) -> None:
    c.allreduce(z[:2], z[2:4])
    c.allreduce(z[4:6], z[:2])
    c.allreduce(z[6:8], z[2:4])


def with_others(c: cl.Communicator, z: Any) -> None:
    c.allreduce(z[:4])
    c.broadcast(z[:4], c.size - 1)
    c.allreduce(z)
    c.scan(z[2:])
    c.allreduce([z[:3], z[4:]])
    c.broadcast([z[:3], z[1:]])


def strided_out(c: cl.Communicator, z: Any) -> None:
    c.allreduce(z[::2])
    c.exscan(z[1::2], z[::2])  # rank 0's out stays as it was
    c.allreduce(z[:2], z[2:6:2])
    c.allreduce(z[2:6:2], z[:2])


CHAINS = [strided_out, twice, chain, shifted, strided, read_before_it_is_written, with_others]


@pytest.mark.parametrize("calls", CHAINS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_calls_of_a_group_that_share_memory_are_made_in_order(
    calls: Callable[[cl.Communicator, Any], None], p: int
) -> None:
    def run(comm: cl.Communicator) -> None:
        alone, together = values(comm.rank), values(comm.rank)
        calls(comm, alone)
        with comm.group():
            calls(comm, together)
        np.testing.assert_array_equal(together, alone)

    on_ranks(p, run)


def test_what_shares_no_memory_still_shares_a_message() -> None:
    def run(comm: cl.Communicator) -> None:
        z = values(comm.rank)
        before = comm.sequence
        with comm.group():
            for i in range(8):
                comm.allreduce(z[i : i + 1])
        assert comm.sequence - before == 1
        np.testing.assert_array_equal(z, 2 * np.arange(8.0) + 12)

    on_ranks(2, run)


def test_a_strided_array_is_read_at_the_end_of_the_block() -> None:
    def run(comm: cl.Communicator) -> None:
        z = np.ones(6)
        with comm.group():
            comm.allreduce(z[::2])
            z[...] = 5
        np.testing.assert_array_equal(z, [10, 5, 10, 5, 10, 5])

    on_ranks(2, run)


def in_a_group(comm: cl.Communicator, *arrays: Any) -> None:
    with comm.group():
        for array in arrays:
            comm.allreduce(array)


def test_other_overlaps_on_one_rank_are_a_mismatch() -> None:
    def run(comm: cl.Communicator) -> None:
        x, y = np.ones(3), np.ones(3)
        with pytest.raises(cl.MismatchError):
            in_a_group(comm, x, x if comm.rank == 0 else y)

    on_ranks(2, run)


def test_lengths_of_a_group_are_compared() -> None:
    told = []

    def run(comm: cl.Communicator) -> None:
        p, q = (np.ones(3), np.ones(5)) if comm.rank == 0 else (np.ones(5), np.ones(3))
        with pytest.raises(cl.MismatchError) as caught:
            in_a_group(comm, p, q)
        told.append(str(caught.value))

    on_ranks(2, run)
    assert told[0] == told[1]
    assert "arrays of 3, 5" in told[0]
    assert "arrays of 5, 3" in told[0]


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ([2, 4], [3, 3]),
        ({"w": 2, "b": 4}, {"w": 4, "b": 2}),
        ({"w": 3, "b": 3}, {"b": 3, "w": 3}),
        ({"w": 3, "b": [3]}, {"w": 3, "b": {"c": 3}}),
        ([20_000, 1], [[20_000], 1]),
        ({1: 3, ("a", 2): 3}, {1: 3, ("a", 3): 3}),
    ],
)
@pytest.mark.parametrize("name", ["allreduce", "broadcast"])
def test_structures_are_compared(mine: Any, theirs: Any, name: str) -> None:
    def arrays(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: arrays(part) for key, part in tree.items()}
        return [arrays(part) for part in tree] if isinstance(tree, list) else np.ones(tree)

    def run(comm: cl.Communicator) -> None:
        def call() -> None:
            getattr(comm, name)(arrays(mine if comm.rank == 0 else theirs))
            comm.barrier()

        with pytest.raises(cl.MismatchError):
            call()

    on_ranks(2, run)


def test_keys_that_have_no_words_of_their_own_are_no_mismatch() -> None:
    class Key:
        pass

    def run(comm: cl.Communicator) -> None:
        got = comm.allreduce({Key(): np.ones(2), frozenset({"a", "b"}): np.ones(1)})
        for array in got.values():
            np.testing.assert_array_equal(array, np.full(len(array), 2.0))

    on_ranks(2, run)


def test_a_structure_in_a_group_has_one_handle() -> None:
    def run(comm: cl.Communicator) -> None:
        with comm.group():
            first = comm.allreduce([np.ones(2), np.ones(3)], async_op=True)
            nothing = comm.broadcast({}, async_op=True)
        np.testing.assert_array_equal(np.concatenate(first.wait(10)), np.full(5, 2.0))
        assert nothing.wait(10) == {}
        later = comm.allreduce((np.ones(100_000), np.ones(1)), async_op=True)
        assert len(later.wait(10)) == 2

    on_ranks(2, run)


def test_an_error_reaches_all_handles_of_a_structure() -> None:
    def run(comm: cl.Communicator) -> None:
        n = 100_000 + comm.rank
        handle = comm.allreduce([np.ones(n), np.ones(1)], async_op=True)
        assert isinstance(handle.exception(10), cl.MismatchError)

    on_ranks(2, run)


def test_what_would_be_reduced_twice_is_refused() -> None:
    def run(comm: cl.Communicator) -> None:
        x = np.ones(4)
        for tree in ([x, x], {"w": x[:3], "b": x[2:]}, [x[::2], x[2:]], [x[::2], x[::-2], x[::2]]):
            with pytest.raises(cl.InvalidArgumentError, match="reduced twice"):
                comm.allreduce(tree)
        fixed = np.ones(2)
        fixed.flags.writeable = False  # gives new results
        one, other = comm.allreduce([fixed, fixed])
        np.testing.assert_array_equal(one + other, np.full(2, 4.0))
        np.testing.assert_array_equal(x, np.ones(4))
        square = np.ones((4, 4))
        before = comm.sequence
        comm.allreduce([square[:, :1], square[:, 1:3], square[::2, 3:], square[1::2, 3]])
        np.testing.assert_array_equal(square, np.full((4, 4), 2.0))
        assert comm.sequence == before + 1

    on_ranks(2, run)


def test_a_structure_that_is_refused_leaves_nothing_in_its_group() -> None:
    def run(comm: cl.Communicator) -> None:
        x = np.ones(2)
        with comm.group():
            with pytest.raises(cl.InvalidArgumentError):
                comm.allreduce([x, "no array"])
            with pytest.raises(cl.InvalidArgumentError):
                comm.allreduce([x, np.ones(2, "U1")])
        np.testing.assert_array_equal(x, np.ones(2))
        assert comm.sequence == 0

    on_ranks(2, run)
