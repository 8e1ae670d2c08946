# SPDX-License-Identifier: Apache-2.0
"""Algorithms, their proofs and their schedules, as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from collectives._ffi import check, ffi, lib, text
from collectives.defined import (
    Defined,
    TooLongError,
    own_algorithm,
    own_algorithms,
    unpacked,
)
from collectives.errors import InternalError, UnsupportedError
from collectives.lowering import lowering
from collectives.names import (
    KIND_NAMES,
    KINDS,
    algorithm_index,
    are_several,
    checked_ranks,
    checked_root,
    kind_code,
    several_ranks,
)
from collectives.stopping import run_alone

ROOTED = ("broadcast", "reduce", "gather", "scatter")

# The plans that verify() proves: where messages lie, slots per rank, tiles between two rounds, and
# stores that they are right with. The engine runs the last two; the first shows that the staged
# form does not depend on its pipeline.
PLANS = (
    ("staged", 4, 0, "non_temporal"),
    ("staged", 4, 1, "non_temporal"),
    ("inline", 8, 0, "ordinary"),
)
_Way = tuple[str, int, int, str]


@dataclass(frozen=True)
class Algorithm:
    """One line of the table. Formulas are in p, L = ceil(log2 p), K = floor(log2 p), P = 2^K, lg.

    lg(x) = ceil(log2 x), 0 up to 1; a comparison is 1 or 0. ``bytes`` are sent and ``reductions``
    folded by the busiest rank, as shares of the vector (in an alltoall: of one rank's); "" claims
    nothing. ``restriction`` is "" for an algorithm of any p.
    """

    kind: str
    name: str
    paper: str
    summary: str
    rounds: str
    bytes: str
    reductions: str
    restriction: str

    def fits(self, p: int) -> bool:
        """Whether the algorithm is defined for ``p`` ranks."""
        ranks = checked_ranks("fits: p", p)
        own = own_algorithm(self.kind, self.name)
        if own is not None:
            return own.fits(ranks)
        return bool(lib.coll_algorithm_fits(algorithm_index(self.kind, self.name), ranks))

    def formula(self, claim: str, p: int) -> float:
        """Return the value for ``p`` ranks of a claim: "rounds", "bytes" or "reductions".

        NaN where the algorithm claims nothing.
        """
        value = ffi.new("double *")
        ranks = checked_ranks("formula: p", p)
        if not getattr(self, claim):
            return math.nan
        check(lib.coll_formula(getattr(self, claim).encode(), ranks, value))
        return float(value[0])


@dataclass(frozen=True)
class Proof:
    """What the prover found out about one schedule or plan.

    ``bytes`` and ``reductions`` are counted, as shares of the vector. ``same_tree_on_ranks``:
    every rank gets the same bits (in a scan no two ranks fold the same operands: there it says
    nothing); ``same_tree_in_vector``: the bits do not depend on how the vector is cut;
    ``rank_order``: fit for non-commutative operators; ``canonical``: the summation tree is the one
    of ``reproducible=True``; ``one_fold``: one op folds all operands. ``mode`` is None for a
    schedule; a plan also has ``depth`` slots, ``lag`` tiles, ``stores`` ("ordinary", or
    "non_temporal": right also where moves write around the caches), and rank 0's ``ops``,
    ``waits`` and ``posts``. ``message`` names the first thing wrong; "" when ``proved``.
    """

    kind: str
    name: str
    p: int
    root: int
    in_place: bool
    mode: str | None
    depth: int
    lag: int
    stores: str | None
    proved: bool
    rounds: int
    bytes: float
    reductions: float
    same_tree_on_ranks: bool
    same_tree_in_vector: bool
    rank_order: bool
    canonical: bool
    one_fold: bool
    ops: int
    waits: int
    posts: int
    message: str


@dataclass(frozen=True)
class Segment:
    """``cells`` consecutive cells of a buffer ("input", "output" or "scratch")."""

    buffer: str
    first: int
    cells: int


@dataclass(frozen=True)
class Step:
    """One step of one rank: "send", "recv", "recv_reduce", "copy" or "reduce".

    ``peers`` of a recv_reduce is the order of the fold, with -1 for the rank's own operand;
    ``shape`` of the fold is "left" or "balanced". A reduce is local: ``target`` becomes the fold
    of ``source`` and ``target``, in this order.
    """

    op: str
    round: int
    shape: str
    peers: tuple[int, ...]
    source: tuple[Segment, ...]
    target: tuple[Segment, ...]


@dataclass(frozen=True)
class Schedule:
    """What every rank does: ``ranks[r]`` are rank r's steps, by ascending round."""

    kind: str
    name: str
    p: int
    root: int
    chunks: int
    ranks: tuple[tuple[Step, ...], ...]

    @property
    def rounds(self) -> int:
        """Number of rounds in which messages travel."""
        return len({step.round for steps in self.ranks for step in steps if step.op == "send"})


def algorithms(kind: str | None = None) -> list[Algorithm]:
    """Return all algorithms, or those of one kind of collective, in the order of the table.

    Those that the program has made with :func:`collectives.algorithm` come last.
    """
    wanted = None if kind is None else kind_code(kind)
    record = ffi.new("coll_algorithm *")
    found = []
    for index in range(lib.coll_algorithm_count()):
        check(lib.coll_algorithm_get(index, record))
        if wanted is None or record.kind == wanted:
            found.append(_algorithm(record))
    return found + [_of_program(own) for own in own_algorithms() if kind in (None, own.kind)]


def _of_program(own: Defined) -> Algorithm:
    return Algorithm(own.kind, own.name, own.paper, own.summary, "", "", "", own.restriction)


def _algorithm(record: Any) -> Algorithm:
    return Algorithm(
        kind=KIND_NAMES[record.kind],
        name=text(record.name),
        paper=text(record.paper),
        summary=text(record.summary),
        rounds=text(record.rounds),
        bytes=text(record.bytes),
        reductions=text(record.reductions),
        restriction=text(record.restriction),
    )


def verify(
    name: str,
    p: int | Iterable[int] = range(1, 17),
    kind: str = "allreduce",
    plans: bool = False,
) -> list[Proof]:
    """Prove an algorithm for each number of ranks in ``p``, each root, in place and not.

    Of several ``p``, those for which the algorithm is not defined are left out; a single one that
    is not raises UnsupportedError; what is no integer, or in several below 1, raises
    InvalidArgumentError. With ``plans``, the plans of the shared-memory engine are proved too
    (those of an algorithm of the program are proved by each communicator, before the first run). A
    failed proof is a value, not an exception: look at ``proved``. A schedule that would fill the
    memory raises UnsupportedError.
    """
    own = own_algorithm(kind, name)
    if own is not None:
        return _prove_own(own, p)
    index = algorithm_index(kind, name)
    if not are_several(p):
        p = (checked_ranks("verify: p", p),)
        _check_fits(index, kind, name, p[0])
    return [
        _prove(index, kind, name, ranks, root, in_place, plan)
        for ranks in several_ranks(p)
        if lib.coll_algorithm_fits(index, ranks)
        for root in range(ranks if kind in ROOTED else 1)
        for in_place in (False, True)
        for plan in (None, *(PLANS if plans else ()))
    ]


def _prove_own(own: Defined, p: int | Iterable[int]) -> list[Proof]:
    if not are_several(p):
        p = (checked_ranks("verify: p", p),)
        _check_own_fits(own, p[0])
    return [
        _proof(own.prove(words, root, in_place), own.kind, own.name, ranks, root, in_place, None)
        for ranks in several_ranks(p)
        if own.fits(ranks)
        for root in range(ranks if own.kind in ROOTED else 1)
        for words in (own.encoded(ranks, root),)
        for in_place in (False, True)
    ]


def _check_own_fits(own: Defined, p: int) -> None:
    if not own.fits(p):
        why = own.restriction or "p is at least 1"
        raise UnsupportedError(f"{own.kind} {own.name} is not defined for {p} ranks: {why}")


def _prove(
    index: int,
    kind: str,
    name: str,
    p: int,
    root: int,
    in_place: bool,
    plan: _Way | None,
) -> Proof:
    found = ffi.new("coll_proof *")
    if plan is None:
        run_alone(lib.coll_prove, index, p, root, in_place, found)
    else:
        run_alone(lib.coll_prove_plan, index, p, root, in_place, lowering(*plan), found)
    return _proof(found, kind, name, p, root, in_place, plan)


def _proof(
    found: Any,
    kind: str,
    name: str,
    p: int,
    root: int,
    in_place: bool,
    plan: _Way | None,
) -> Proof:
    mode, depth, lag, stores = plan or (None, 0, 0, None)
    return Proof(
        kind=kind,
        name=name,
        p=p,
        root=root,
        in_place=in_place,
        mode=mode,
        depth=depth,
        lag=lag,
        stores=stores,
        proved=bool(found.proved),
        rounds=found.rounds,
        bytes=found.bytes,
        reductions=found.reductions,
        same_tree_on_ranks=bool(found.same_tree_on_ranks),
        same_tree_in_vector=bool(found.same_tree_in_vector),
        rank_order=bool(found.rank_order),
        canonical=bool(found.canonical),
        one_fold=bool(found.one_fold),
        ops=found.ops,
        waits=found.waits,
        posts=found.posts,
        message=text(found.message),
    )


def schedule(name: str, p: int, kind: str = "allreduce", root: int = 0) -> Schedule:
    """Return the schedule of an algorithm for ``p`` ranks.

    Raises InvalidArgumentError for an unknown algorithm or a ``root`` that is not a rank,
    UnsupportedError for a ``p`` that does not fit the algorithm, or so large that the schedule
    would fill the memory.
    """
    shown = schedule_within(_MOST_NUMBERS, name, p, kind, root)
    if shown is None:
        raise UnsupportedError(
            f"schedule: {kind} {name} for {p} ranks has too many steps to hold them all as values "
            "of Python: take fewer ranks"
        )
    return shown


# Of an encoded schedule. As plain values so many take a GiB or two.
_MOST_NUMBERS = 1 << 24


def schedule_within(most: int, name: str, p: int, kind: str, root: int) -> Schedule | None:
    """Return what schedule() does; None where it is encoded in more than ``most`` numbers."""
    ranks = checked_ranks("schedule: p", p)
    own = own_algorithm(kind, name)
    if own is not None:
        _check_own_fits(own, ranks)
        encoded = own.encoded(ranks, checked_root("schedule", root, ranks))
        return decode(encoded, name) if len(encoded) <= most else None
    index = algorithm_index(kind, name)
    _check_fits(index, kind, name, ranks)
    place = checked_root("schedule", root, ranks)
    try:
        return decode(unpacked(lib.coll_schedule, index, ranks, place, most=most), name)
    except TooLongError:
        return None


def _check_fits(index: int, kind: str, name: str, p: int) -> None:
    if not lib.coll_algorithm_fits(index, p):
        record = ffi.new("coll_algorithm *")
        check(lib.coll_algorithm_get(index, record))
        why = text(record.restriction) or "p is at least 1"
        raise UnsupportedError(f"{kind} {name} is not defined for {p} ranks: {why}")


def by_round(shown: Schedule) -> list[tuple[int, list[tuple[int, Step]]]]:
    """Return the label of each round, and its steps with the ranks they are of, by rank."""
    found: dict[int, list[tuple[int, Step]]] = {}
    for rank, steps in enumerate(shown.ranks):
        for step in steps:
            found.setdefault(step.round, []).append((rank, step))
    return sorted(found.items(), key=lambda entry: entry[0])


_OPS = ("send", "recv", "recv_reduce", "copy", "reduce")
_SHAPES = ("left", "balanced")
_BUFFERS = ("input", "output", "scratch")


def decode(encoded: Sequence[int], name: str) -> Schedule:
    """Turn an encoded schedule (docs: encoding) to plain values."""
    numbers = iter(encoded)
    magic, version, kind, p, root, chunks = (next(numbers) for _ in range(6))
    if (magic, version) != (0x5343, 1):
        raise InternalError(f"not an encoded schedule: it begins with {magic}, {version}")
    ranks = tuple(tuple(_step(numbers) for _ in range(next(numbers))) for _ in range(p))
    return Schedule(KIND_NAMES[kind], name, p, root, chunks, ranks)


def _step(numbers: Iterator[int]) -> Step:
    op, label, shape = next(numbers), next(numbers), next(numbers)
    peers = tuple(next(numbers) for _ in range(next(numbers)))
    source, target = _segments(numbers), _segments(numbers)
    return Step(_OPS[op], label, _SHAPES[shape], peers, source, target)


def _segments(numbers: Iterator[int]) -> tuple[Segment, ...]:
    count = next(numbers)
    return tuple(
        Segment(_BUFFERS[next(numbers)], next(numbers), next(numbers)) for _ in range(count)
    )


__all__ = [
    "KINDS",
    "Algorithm",
    "Proof",
    "Schedule",
    "Segment",
    "Step",
    "algorithms",
    "decode",
    "schedule",
    "verify",
]
