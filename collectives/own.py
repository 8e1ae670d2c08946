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
from collectives.errors import InvalidArgumentError
from collectives.names import KINDS, OWN, algorithm_names, integer, kind_code

SELF = -1
"""The place of a rank's own value in the order of a recv_reduce."""

BUFFERS = ("input", "output", "scratch")

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
        peer = integer(to)
        peers = list(to) if isinstance(to, Iterable) else [to if peer is None else peer]
        check(lib.coll_builder_send(self._native, round, peers, len(peers), *self._pairs(chunks)))

    def recv(self, round: int, source: int, chunks: Chunks) -> None:
        """Take chunks as the source sent them."""
        check(lib.coll_builder_recv(self._native, round, source, *self._pairs(chunks)))

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
        given = list(order)  # type: ignore[arg-type]
        check(
            lib.coll_builder_recv_reduce(
                self._native, round, given, len(given), int(balanced), *self._pairs(chunks)
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
        check(lib.coll_builder_copy(self._native, round, *places, *self._pairs(chunks)))

    def _pairs(self, chunks: Chunks) -> tuple[list[int], int]:
        pairs = [number for first, count in _runs(chunks, self.chunks) for number in (first, count)]
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
class OwnAlgorithm:
    """An algorithm written with :func:`algorithm`; call it to write one rank's program."""

    kind: str
    name: str
    write: Callable[[ScheduleBuilder], None]
    chunks: Callable[[int], int]
    paper: str
    summary: str

    def __call__(self, builder: ScheduleBuilder) -> None:
        """Write the program of ``builder.rank``: one algorithm may be made of others."""
        self.write(builder)

    def encoded(self, p: int, root: int = 0) -> list[int]:
        """Return the schedule of all ranks as numbers (docs/encoding.md), not yet proved."""
        chunks = integer(self.chunks(p))
        if chunks is None:
            raise InvalidArgumentError(
                f"algorithm {self.name}: chunks gives {self.chunks(p)!r} for {p} ranks, no integer"
            )
        place = ffi.new("coll_builder **")
        check(lib.coll_builder_new(KINDS[self.kind], p, root, chunks, place))
        native = ffi.gc(place[0], lib.coll_builder_free)
        for rank in range(p):
            check(lib.coll_builder_rank(native, rank))
            self.write(ScheduleBuilder(native, rank, p, root, chunks))
        words, length = ffi.new("int32_t **"), ffi.new("size_t *")
        check(lib.coll_builder_finish(native, words, length))
        try:
            return list(ffi.unpack(words[0], length[0]))
        finally:
            lib.coll_free(words[0])


# Calls speak of an algorithm of the program by a negative number, which names.OWN has by name.
_own: list[OwnAlgorithm] = []
_FIRST = -2


def algorithm(
    kind: str,
    *,
    name: str | None = None,
    chunks: int | Callable[[int], int] | None = None,
    paper: str = "",
) -> Callable[[Callable[[ScheduleBuilder], None]], OwnAlgorithm]:
    """Make an algorithm of a function that writes one rank's program.

    Args:
        kind: the collective that it implements, such as "allreduce".
        name: what ``algorithm=`` calls it; by default the function's name.
        chunks: in how many parts the vector is cut: a number, or a function of p. By default p
            (p * p in alltoall).
        paper: where it comes from, for :func:`collectives.algorithms`.

    The decorated function is called once per rank with a :class:`ScheduleBuilder`, and must depend
    on nothing else. The schedule is proved before its first use: a wrong one is refused with
    InvalidArgumentError, which names rank, round, chunk and reason. All ranks define the same
    algorithms; where they differ, calls end with MismatchError. Defining a name again replaces it
    for communicators made later. The name of a built-in algorithm is refused.
    """
    code = kind_code(kind)
    parts = chunks

    def count(p: int) -> int:
        if parts is None:
            return p * p if kind == "alltoall" else p
        return parts(p) if callable(parts) else parts

    def made(function: Callable[[ScheduleBuilder], None]) -> OwnAlgorithm:
        called = function.__name__ if name is None else name
        if not isinstance(called, str) or not called:
            raise InvalidArgumentError(f"algorithm: name is {called!r}: give a word")
        if called in algorithm_names(code):
            raise InvalidArgumentError(
                f"algorithm: {called!r} is a built-in {kind}: choose another name"
            )
        summary = (function.__doc__ or "").strip().partition("\n")[0]
        own = OwnAlgorithm(kind, called, function, count, paper, summary)
        OWN[kind, called] = _FIRST - len(_own)
        _own.append(own)
        return own

    return made


def own_by_number(number: int) -> OwnAlgorithm:
    """Return the algorithm that a call speaks of."""
    return _own[_FIRST - number]


def own_algorithm(kind: str, name: str) -> OwnAlgorithm | None:
    """Return the algorithm of that name, if the program has defined one."""
    named = isinstance(kind, str) and isinstance(name, str)  # a list, for one, is no key
    number = OWN.get((kind, name)) if named else None
    return None if number is None else own_by_number(number)


def own_algorithms() -> list[OwnAlgorithm]:
    """Return all algorithms that the program has defined."""
    return [own_by_number(number) for number in OWN.values()]
