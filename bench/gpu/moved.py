# SPDX-License-Identifier: Apache-2.0
"""The bytes that a plan moves through memory: all that its ops read and write, counted."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from collectives._ffi import check, ffi, lib
from collectives.lowering import lowering
from collectives.names import algorithm_index

DEPTH, LAG = 4, 1  # as native/communicator/gpu_plans.cc lowers plans
STAGE = 3
PACKET = 2  # bytes that lie in a stage of packets, for each that is told


@lru_cache(maxsize=256)
def moved(name: str, ranks: int, mode: str, kind: str = "allreduce") -> Fraction:
    """Return the bytes that all ranks together read and write, in vectors of one rank.

    ``mode``: "staged", "inline", "pull" or "push". The plan is the one that runs on a GPU.
    """
    words = iter(_plan(algorithm_index(kind, name), ranks, mode))
    _, _, _, p, _, chunks = (next(words) for _ in range(6))
    _skip(words, 5)
    cells = sum(_cells_of_rank(words, mode == "inline") for _ in range(p))
    return Fraction(cells, chunks)


def _plan(algorithm: int, ranks: int, mode: str) -> list[int]:
    data, length = ffi.new("int32_t **"), ffi.new("size_t *")
    check(lib.coll_plan(algorithm, ranks, 0, lowering(mode, DEPTH, LAG), data, length))
    try:
        return ffi.unpack(data[0], length[0])
    finally:
        lib.coll_free(data[0])


def _cells_of_rank(words: Iterator[int], packets: bool) -> int:
    _skip(words, 3 * next(words))  # areas
    return sum(_cells_of_op(words, packets) for _ in range(next(words)))


def _cells_of_op(words: Iterator[int], packets: bool) -> int:
    _skip(words, 7)
    cells = sum(_cells_of_operand(words, packets) for _ in range(next(words)))  # read
    cells += sum(_cells_of_operand(words, packets) for _ in range(next(words)))  # written
    _skip(words, 3 * next(words))  # waits
    return cells


def _cells_of_operand(words: Iterator[int], packets: bool) -> int:
    _skip(words, 2)
    cells = 0
    for _ in range(next(words)):
        place, _, count = next(words), next(words), next(words)
        cells += count * (PACKET if packets and place == STAGE else 1)
    return cells


def _skip(words: Iterator[int], count: int) -> None:
    for _ in range(count):
        next(words)
