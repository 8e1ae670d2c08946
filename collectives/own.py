# SPDX-License-Identifier: Apache-2.0
"""Algorithms that a program writes itself, with the verbs of the built-in ones: :func:`algorithm`.

What is written is a schedule: it is proved before its first use, and then run, listed, drawn and
verified like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from collectives._ffi import check, ffi, lib
from collectives.defined import Defined, define, unpacked
from collectives.errors import InvalidArgumentError
from collectives.names import KINDS, integer, kind_code

MOST_CHUNKS = 1 << 14
"""Chunks of a vector, or p * p where that is more: to prove a schedule of more takes minutes."""

SELF = -1
"""The place of a rank's own value in the order of a recv_reduce."""

BUFFERS = ("input", "output", "scratch")

_MOST = 2**31 - 1  # of a number of the native layer

# Chunks of the vector: a number, a range or slice of them, or several of these.
Chunks = int | range | slice | Sequence[Any]


class ScheduleBuilder:
    """Writes the program of one rank, round by round.

    ``rank``, ``p``, ``root`` and ``chunks`` say where it stands; chunks of the vector are numbered
    0 ... chunks-1. Where every rank owns a part (allgather, reduce_scatter, gather, scatter),
    rank r's are the r-th of p equal runs of them; in alltoall chunk s * p + d is what rank s has
    for rank d. The builder knows where each chunk's value lies, so in place, out of place and
    p = 1 need no special case.

    Rounds ascend. A message is sent and received in the same round; in a round sends read before
    receives write, and are written first; copies come last.
    """

    def __init__(self, native: Any, rank: int, p: int, root: int, chunks: int) -> None:
        """Take over the native builder. The library makes these."""
        self._native = native
        self.rank = rank
        self.p = p
        self.root = root
        self.chunks = chunks

    @property
    def all(self) -> range:
        """All chunks."""
        return range(self.chunks)

    def send(self, round: int, to: int | Iterable[int], chunks: Chunks) -> None:
        """Hand chunks to one rank, or to each of several."""
        listed = list(to) if isinstance(to, Iterable) else [to]
        peers = [self._number("send: to", peer) for peer in listed]
        label = self._number("send: round", round)
        check(lib.coll_builder_send(self._native, label, peers, len(peers), *self._pairs(chunks)))

    def recv(self, round: int, source: int, chunks: Chunks) -> None:
        """Take chunks as the source sent them."""
        label, peer = self._number("recv: round", round), self._number("recv: source", source)
        check(lib.coll_builder_recv(self._native, label, peer, *self._pairs(chunks)))

    def recv_reduce(
        self, round: int, order: int | Sequence[int], chunks: Chunks, *, balanced: bool = False
    ) -> None:
        """Fold what ranks sent with this rank's own value.

        ``order`` names the ranks, with :data:`SELF` at the place of the own value; one rank alone
        means it and this rank, the lower first. The fold is ((a + b) + c) + d, or, balanced,
        (a + b) + (c + d).
        """
        peer = integer(order)
        if peer is not None:
            order = [peer, SELF] if peer < self.rank else [SELF, peer]
        listed = list(order) if isinstance(order, Iterable) else [order]
        given = [self._number("recv_reduce: order", rank) for rank in listed]
        label = self._number("recv_reduce: round", round)
        check(
            lib.coll_builder_recv_reduce(
                self._native, label, given, len(given), int(balanced), *self._pairs(chunks)
            )
        )

    def copy(self, round: int, source: str, target: str, chunks: Chunks) -> None:
        """Copy chunks from one of this rank's buffers to another: "input", "output", "scratch"."""
        try:
            places = BUFFERS.index(source), BUFFERS.index(target)
        except ValueError:
            raise InvalidArgumentError(
                f"copy: {source!r} to {target!r}: buffers are {', '.join(BUFFERS)}"
            ) from None
        label = self._number("copy: round", round)
        check(lib.coll_builder_copy(self._native, label, *places, *self._pairs(chunks)))

    def _number(self, what: str, value: object) -> int:
        """Return an integer that the native layer holds; whether it makes sense is its to say."""
        number = integer(value)
        if number is None or not -_MOST <= number <= _MOST:
            raise InvalidArgumentError(
                f"rank {self.rank}: {what} is {value!r}: give an integer, as rank and p are"
            )
        return number

    def _pairs(self, chunks: Chunks) -> tuple[list[int], int]:
        pairs = [
            self._number("chunks", number)
            for first, count in _runs(chunks, self.chunks)
            for number in (first, count)
        ]
        return pairs, len(pairs) // 2


def _runs(chunks: Chunks, total: int) -> Iterable[tuple[int, int]]:
    """Yield (first, count) of every run of chunks."""
    number = integer(chunks)
    if number is not None:
        yield number, 1
    elif isinstance(chunks, slice):
        yield from _runs(range(*chunks.indices(total)), total)
    elif isinstance(chunks, range) and chunks.step == 1:
        yield chunks.start, len(chunks)
    elif isinstance(chunks, Sequence) and not isinstance(chunks, str):
        for part in chunks:
            yield from _runs(part, total)
    else:
        raise InvalidArgumentError(
            f"chunks are {chunks!r}: give a number, a range, a slice, or a list of these"
        )


@dataclass(frozen=True)
class OwnAlgorithm(Defined):
    """An algorithm written with :func:`algorithm`; call it to write one rank's program."""

    kind: str
    name: str
    write: Callable[[ScheduleBuilder], None]
    chunks: Callable[[int], int]
    paper: str
    summary: str
    same_bits: bool = True

    def __call__(self, builder: ScheduleBuilder) -> None:
        """Write the program of ``builder.rank``: one algorithm may be made of others."""
        self.write(builder)

    def encoded(self, p: int, root: int = 0) -> list[int]:
        """Return the schedule of all ranks as numbers (docs/encoding.md), not yet proved."""
        given = self.chunks(p)
        chunks = integer(given)
        most = max(MOST_CHUNKS, p * p)
        if chunks is None or not 1 <= chunks <= most:
            raise InvalidArgumentError(
                f"{self._called}: chunks is {given!r} for {p} ranks: give an integer from 1 to "
                f"{most}"
            )
        try:
            return written(self.kind, p, root, chunks, self.write)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{self._called}, {p} ranks: {error}") from error


def written(
    kind: str, p: int, root: int, chunks: int, write: Callable[[ScheduleBuilder], None]
) -> list[int]:
    """Return the schedule that ``write`` makes, called for each rank, as numbers."""
    place = ffi.new("coll_builder **")
    check(lib.coll_builder_new(KINDS[kind], p, root, chunks, place))
    native = ffi.gc(place[0], lib.coll_builder_free)
    for rank in range(p):
        check(lib.coll_builder_rank(native, rank))
        write(ScheduleBuilder(native, rank, p, root, chunks))
    return unpacked(lib.coll_builder_finish, native)


def algorithm(
    kind: str,
    *,
    name: str | None = None,
    chunks: int | Callable[[int], int] | None = None,
    paper: str = "",
    same_bits: bool = True,
) -> Callable[[Callable[[ScheduleBuilder], None]], OwnAlgorithm]:
    """Make an algorithm of a function that writes one rank's program.

    Args:
        kind: the collective that it implements, such as "allreduce".
        name: what ``algorithm=`` calls it; by default the function's name.
        chunks: in how many parts the vector is cut: a number, or a function of p. By default p
            (p * p in alltoall); at most 16384, or p * p where that is more.
        paper: where it comes from, for :func:`collectives.algorithms`.
        same_bits: whether an allreduce must fold every element in one order on all ranks, so that
            all get the same bits. With False one that does not is run all the same: right, but
            ranks may differ in the last bits of a sum of floats.

    The decorated function is called once per rank with a :class:`ScheduleBuilder`, and must depend
    on nothing else. The schedule is proved before its first use: a wrong one is refused with
    InvalidArgumentError, which names rank, round, chunk and reason. All ranks define the same
    algorithms; where they differ, calls end with MismatchError. Defining a name again replaces it
    for communicators made later. The name of a built-in algorithm is refused.
    """
    kind_code(kind)
    parts = chunks

    def count(p: int) -> int:
        if parts is None:
            return p * p if kind == "alltoall" else p
        return parts(p) if callable(parts) else parts

    def made(function: Callable[[ScheduleBuilder], None]) -> OwnAlgorithm:
        called = function.__name__ if name is None else name
        summary = (function.__doc__ or "").strip().partition("\n")[0]
        return define(OwnAlgorithm(kind, called, function, count, paper, summary, same_bits))

    return made
