# SPDX-License-Identifier: Apache-2.0
"""Every algorithm in every mode, among 1 to 8 ranks that share a GPU, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import collectives as cl
from bench.gpu.team import Team
from tests.gpu.calls import Kind, Room, errors, on_all

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

KINDS = ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "gather",
         "scatter", "alltoall", "scan")  # fmt: skip
MODES = ("staged", "inline", "pull", "push")
# Fewer and more elements than ranks, none a multiple of 3 ... 8; several tiles. Packets are for
# few: 4096 bytes of all ranks are in reach of every plan.
SHORT, LONG = (0, 1, 5, 127), (1009, 20_011)
# Turns of what sums are kept in, one after another: all of them are in test_dtypes.py.
DTYPES = ("float32", "bfloat16", "int8", "float64", "float16", "complex64", "uint16")


def calls_of(kind: str, ranks: int) -> Iterator[tuple[Kind, str, str]]:
    """(call, algorithm, mode): each algorithm and mode with two lengths and dtypes, in turns."""
    lengths = itertools.cycle(SHORT + LONG)
    short = itertools.cycle(SHORT)
    dtypes, roots = itertools.cycle(DTYPES), itertools.cycle(range(ranks))
    for algorithm in cl.algorithms(kind):
        if not algorithm.fits(ranks):
            continue
        for mode in MODES:
            for _ in range(2):
                count = next(short) if mode == "inline" else next(lengths)
                call = Kind(kind, count, next(dtypes), root=next(roots))
                yield call, algorithm.name, mode


@pytest.mark.parametrize("ranks", range(1, 9))
@pytest.mark.parametrize("kind", KINDS)
def test_every_algorithm_in_every_mode(kind: str, ranks: int, room: Room) -> None:
    assert list(calls_of(kind, ranks)) != []
    with Team(ranks) as team:
        found = []
        for call, name, mode in calls_of(kind, ranks):
            outcomes = on_all(team, room, call, algorithm=name, mode=mode)
            found += [(call, name, mode, outcome) for outcome in outcomes]
        assert found == []


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_the_choice_at_all_lengths(ranks: int, room: Room) -> None:
    counts = (0, 1, 2, 7, 63, 1024, 4096, 4097, 30_000)
    with Team(ranks) as team:
        for count, kind in itertools.product(counts, ("allreduce", "allgather", "reduce_scatter")):
            call = Kind(kind, count)
            assert on_all(team, room, call) == [], call


@pytest.mark.parametrize("offset", [4, 8, 12])
def test_arrays_that_begin_between_two_vectors(offset: int, room: Room) -> None:
    with Team(3) as team:
        for mode in ("staged", "pull", "push"):
            for count in (1, 3, 1009, 20_011):
                call = Kind("allreduce", count, offset=offset)
                assert on_all(team, room, call, mode=mode) == [], (call, mode)


def test_an_array_between_two_elements_is_refused(room: Room) -> None:
    with Team(2) as team:
        for error in errors(team, room, Kind("allreduce", 8, offset=2)):
            assert isinstance(error, cl.InvalidArgumentError)
            assert "no multiple of its elements' 4 bytes" in str(error)
        assert on_all(team, room, Kind("allreduce", 8, "int16", offset=2)) == []


def test_small_set(room: Room) -> None:
    """Few calls of all that the kernel does: the ones that run under compute-sanitizer."""
    with Team(3) as team:
        for mode, kind in itertools.product(MODES, ("allreduce", "alltoall")):
            for dtype in ("float32", "bfloat16"):
                call = Kind(kind, 133, dtype)
                assert on_all(team, room, call, mode=mode) == [], (call, mode)
        for name in ("ring", "circulant", "double_tree", "dissemination"):
            call = Kind("allreduce", 4001)
            assert on_all(team, room, call, algorithm=name, mode="staged") == [], name
