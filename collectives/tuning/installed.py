# SPDX-License-Identifier: Apache-2.0
"""Choices on their way into a communicator, and what it would choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from collectives._ffi import ffi, lib, text
from collectives.errors import InvalidArgumentError
from collectives.names import KINDS, MODES, algorithm_index
from collectives.tuning.table import RULE, Choice

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_BY_NUMBER = {lib.COLL_MODE_STAGED: "staged", lib.COLL_MODE_INLINE: "inline", -1: "wire"}
HIERARCHICAL = "hierarchical"  # a product over hosts, which is in no table


def install(comm: Communicator, choices: Iterable[Choice]) -> None:
    """Take these choices from the next call on; all ranks must, between the same two calls.

    None: the library chooses by itself again.
    """
    listed = list(choices)
    shared = comm.transport == "memory"
    for choice in listed:
        if choice.algorithm != RULE and (choice.mode == "wire") == shared:
            raise InvalidArgumentError(
                f"a choice of {choice.kind} has mode {choice.mode!r}, which is none of ranks that "
                f"exchange bytes by {comm.transport}"
            )
    lines = native_lines(listed)
    comm._call("tune", lambda native: lib.coll_tune(native, lines, len(listed)))


def native_lines(choices: Sequence[Choice]) -> Any:
    """Return them as an array of ``coll_choice``."""
    lines = ffi.new("coll_choice[]", len(choices))
    for line, choice in zip(lines, choices, strict=True):
        line.size = ffi.sizeof("coll_choice")
        line.kind, line.far = KINDS[choice.kind], int(choice.far)
        by_rule = choice.algorithm == RULE
        line.algorithm = -1 if by_rule else algorithm_index(choice.kind, choice.algorithm)
        line.mode = -1 if choice.mode == "wire" else MODES[choice.mode]
        line.lag, line.tile_bytes = choice.lag, choice.tile_bytes
        setattr(line, "from", choice.nbytes)
    return lines


def chosen(comm: Communicator, kind: str, nbytes: int, far: bool = False) -> tuple[Choice, bool]:
    """Return what a call would run, and whether that was measured."""
    line = ffi.new("coll_choice *")
    line.size = ffi.sizeof("coll_choice")
    tuned = ffi.new("int32_t *")
    comm._call(
        "explain",
        lambda native: lib.coll_chosen(native, KINDS[kind], nbytes, far, line, tuned),
    )
    return _choice(kind, nbytes, far, line), bool(tuned[0])


def _choice(kind: str, nbytes: int, far: bool, line: Any) -> Choice:
    name = HIERARCHICAL
    if line.algorithm < lib.coll_algorithm_count():
        record = ffi.new("coll_algorithm *")
        lib.coll_algorithm_get(line.algorithm, record)
        name = text(record.name)
    return Choice(kind, nbytes, name, _BY_NUMBER[line.mode], line.lag, int(line.tile_bytes), far)
