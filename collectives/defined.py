# SPDX-License-Identifier: Apache-2.0
"""Algorithms that a program has defined: what is known of them by name, and the proof of each.

They are schedules: proved before their first use, and then run, listed, drawn and verified like
the built-in ones.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from collectives._ffi import ffi, lib, text
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.names import OWN, algorithm_names, kind_code
from collectives.stopping import run_alone

_EVERY = lib.COLL_CHECK_ALL


class Defined(ABC):
    """An algorithm of the program."""

    kind: str
    name: str
    paper: str
    summary: str
    same_bits: bool

    @abstractmethod
    def encoded(self, p: int, root: int = 0) -> list[int]:
        """Return the schedule of all ranks as numbers (docs/encoding.md), not yet proved."""

    @property
    def restriction(self) -> str:
        """For which numbers of ranks it is, in words; "" any."""
        return ""

    def fits(self, p: int) -> bool:
        """Whether it is defined for ``p`` ranks."""
        return p >= 1

    def prove(self, words: list[int], root: int, in_place: bool) -> Any:
        """Return what the prover finds of ``words``, those of :meth:`encoded`: a ``coll_proof``."""
        found = ffi.new("coll_proof *")
        run_alone(lib.coll_prove_encoded, words, len(words), in_place, -1, _EVERY, found)
        return found

    def proved(self, p: int, root: int = 0) -> list[int]:
        """Return the schedule as :meth:`encoded` does, if it is right, in place and not.

        Raises InvalidArgumentError, which names rank, round, chunk and reason, where it is not,
        and for an allreduce whose ranks would get sums of different bits, unless ``same_bits`` is
        False.
        """
        words = self.encoded(p, root)
        for in_place in (False, True):
            found = self.prove(words, root, in_place)
            if not found.proved:
                raise InvalidArgumentError(f"{self._called}, {p} ranks: {text(found.message)}")
            if self.same_bits and self.kind == "allreduce" and not found.same_tree_on_ranks:
                raise InvalidArgumentError(
                    f"{self._called}, {p} ranks: the ranks fold their operands in different "
                    "orders, so that sums of floats would differ by rank: give every recv_reduce "
                    "of a chunk the same order of ranks (SELF at this rank's place), or allow it "
                    "with cl.algorithm(..., same_bits=False)"
                )
        return words

    @property
    def _called(self) -> str:
        return f"{self.kind}: algorithm {self.name}"


class DefinedForOne(Defined):
    """An algorithm of the program for one number of ranks, ``p``."""

    p: int

    @property
    def restriction(self) -> str:
        """For which numbers of ranks it is, in words."""
        return f"p = {self.p}"

    def fits(self, p: int) -> bool:
        """Whether it is defined for ``p`` ranks."""
        return p == self.p

    def _check_fits(self, p: int) -> None:
        if p != self.p:
            raise UnsupportedError(
                f"{self._called} is made for {self.p} ranks, not for {p}: make another one"
            )


class TooLongError(Exception):
    """A native function hands out more numbers than its caller can do with."""


def unpacked(function: Callable[..., int], *arguments: Any, most: int = sys.maxsize) -> list[int]:
    """Return the numbers that a native function hands out; raise TooLongError above ``most``."""
    words, length = ffi.new("int32_t **"), ffi.new("size_t *")
    run_alone(function, *arguments, words, length)
    try:
        if length[0] > most:
            raise TooLongError
        return list(ffi.unpack(words[0], length[0]))
    finally:
        lib.coll_free(words[0])


# Calls speak of an algorithm of the program by a negative number, which names.OWN has by name.
_defined: list[Defined] = []
_FIRST = -2
_LONGEST = 100  # letters of a name

_D = TypeVar("_D", bound=Defined)


def define(algorithm: _D) -> _D:
    """Make an algorithm known by its name; raise InvalidArgumentError where that is taken."""
    kind, name = algorithm.kind, algorithm.name
    if not isinstance(name, str) or not _is_word(name):
        from collectives.topology.checked import shown  # only for what is wrong

        raise InvalidArgumentError(
            f"algorithm: name is {shown(name)}: give a word of at most {_LONGEST} letters"
        )
    if name in algorithm_names(kind_code(kind)):
        raise InvalidArgumentError(f"algorithm: {name!r} is a built-in {kind}: choose another name")
    OWN[kind, name] = _FIRST - len(_defined)
    _defined.append(algorithm)
    return algorithm


def _is_word(name: str) -> bool:
    """Whether lists, errors and traces can show it, and tell it from what stands around it."""
    return 0 < len(name) <= _LONGEST and name.isprintable() and " " not in name


def own_by_number(number: int) -> Defined:
    """Return the algorithm that a call speaks of."""
    return _defined[_FIRST - number]


def own_algorithm(kind: str, name: str) -> Defined | None:
    """Return the algorithm of that name, if the program has defined one."""
    named = isinstance(kind, str) and isinstance(name, str)  # a list, for one, is no key
    number = OWN.get((kind, name)) if named else None
    return None if number is None else own_by_number(number)


def own_algorithms() -> list[Defined]:
    """Return all algorithms that the program has defined."""
    return [own_by_number(number) for number in OWN.values()]
