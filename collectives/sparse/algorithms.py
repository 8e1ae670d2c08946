# SPDX-License-Identifier: Apache-2.0
"""The algorithms of sparse vectors, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from collectives._ffi import check, ffi, lib, text
from collectives.catalogue import Algorithm, algorithms
from collectives.errors import InvalidArgumentError
from collectives.names import KIND_NAMES, choose_from

_KINDS = ("allreduce", "reduce_scatter", "allgather", "broadcast")


@dataclass(frozen=True)
class SparseAlgorithm:
    """One algorithm of sparse vectors: a schedule whose messages carry pairs.

    ``kind`` is what it does, ``name`` what ``algorithm=`` takes, ``schedule`` the dense algorithm
    whose schedule it runs: of the same kind, or an allgather whose results every rank adds up;
    ``number`` is its own place, as C has it.
    """

    kind: str
    name: str
    paper: str
    summary: str
    schedule: Algorithm
    number: int


@lru_cache(maxsize=1)
def _table() -> tuple[SparseAlgorithm, ...]:
    known = algorithms()
    found = []
    for number in range(lib.coll_sparse_algorithm_count()):
        out = ffi.new("coll_sparse_algorithm *")
        check(lib.coll_sparse_algorithm_get(number, out))
        words = (text(out.name), text(out.paper), text(out.summary))
        found.append(SparseAlgorithm(KIND_NAMES[out.kind], *words, known[out.schedule], number))
    return tuple(found)


def sparse_algorithms(kind: str | None = None) -> list[SparseAlgorithm]:
    """Return all algorithms of sparse vectors, or those of one collective.

    ``kind`` is "allreduce", "reduce_scatter", "allgather" or "broadcast"; any other raises
    InvalidArgumentError. An allreduce also takes "dense", which is the dense collective of vectors
    that are made dense.
    """
    if kind is not None:
        choose_from(kind, _KINDS, "collective of sparse vectors")
    return [a for a in _table() if kind in (None, a.kind)]


def algorithm_number(kind: str, algorithm: str | None) -> int:
    """Return what the native layer calls an algorithm; None and "auto" leave it to the library."""
    if algorithm is None or algorithm == "auto":
        return int(lib.COLL_SPARSE_CHOOSE)
    if algorithm == "dense" and kind == "allreduce":
        return int(lib.COLL_SPARSE_AS_DENSE)
    names = {a.name: a.number for a in _table() if a.kind == kind}
    if not isinstance(algorithm, str) or algorithm not in names:
        more = ["dense"] if kind == "allreduce" else []
        raise InvalidArgumentError(
            f"{kind}: there is no algorithm {algorithm!r} of sparse vectors; these are: "
            + ", ".join([*names, *more])
        )
    return names[algorithm]


def name_of(number: int) -> str:
    """Return the name of an algorithm that ran."""
    others = {lib.COLL_SPARSE_AS_DENSE: "dense", lib.COLL_SPARSE_AT_ONCE: "at_once"}
    return others.get(number) or _table()[number].name
