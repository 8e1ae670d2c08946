# SPDX-License-Identifier: Apache-2.0
"""Calls that NCCL launches together: ``with nccl.group():``, and what they would take."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from collectives.nccl.constants import IN_PROGRESS, SIMULATION_MAGIC, SUCCESS
from collectives.nccl.declarations import ffi
from collectives.nccl.errors import NcclError
from collectives.nccl.library import Library, load
from collectives.nccl.versions import NEWEST


class Member(Protocol):
    """What a group knows of a communicator."""

    def adopt(self) -> None:
        """Take the handle that the end of the group has written."""

    def begun(self, function: str) -> None:
        """Take note that a function of the group is in progress."""

    def wait_if_timed(self) -> None:
        """Wait for it where there is a time-out for that."""


class Group:
    """Calls of this thread that are begun together, when the block ends.

    NCCL only takes note of them until then: results are not there within the block, nor are the
    communicators that it makes.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._members: dict[int, Member] = {}
        self._made: list[Member] = []
        self._arrays: list[Any] = []

    def keep(self, member: Member, arrays: tuple[Any, ...]) -> None:
        """Hold the arrays of a call, which NCCL reads when the group ends."""
        self._members[id(member)] = member
        self._arrays.extend(arrays)

    def keep_new(self, member: Member) -> None:
        """Take note of a communicator that is there when the group has ended."""
        self._made.append(member)

    def begin(self) -> None:
        """Begin, within the group around this one if there is one."""
        self._library.call("ncclGroupStart")
        _stack().append(self)
        OPEN.append(self)

    def end(self) -> None:
        """Begin what was taken note of. Raises what NCCL reports."""
        code = self._left(self._library.function("ncclGroupEnd"))
        if code not in (SUCCESS, IN_PROGRESS):
            raise self._library.error("ncclGroupEnd", code)
        if current() is None:
            for member in (*self._made, *self._members.values()):
                member.wait_if_timed()

    def simulate(self) -> float:
        """End it without beginning anything; return the seconds that it would take."""
        info = ffi.new("ncclSimInfo_t *")
        info.size, info.magic = ffi.sizeof("ncclSimInfo_t"), SIMULATION_MAGIC
        info.version = min(self._library.version, NEWEST).code
        info.estimatedTime = -1.0  # not known
        code = self._left(self._library.function("ncclGroupSimulateEnd"), info)
        if code != SUCCESS:
            raise self._library.error("ncclGroupSimulateEnd", code)
        microseconds = float(info.estimatedTime)
        return math.nan if microseconds < 0 else microseconds * 1e-6

    def _left(self, function: Any, *arguments: Any) -> int:
        _stack().pop()
        OPEN.remove(self)
        outer = current()
        code = int(function(*arguments))
        if outer is not None:  # NCCL waits for the end of the outermost
            outer._members |= self._members
            outer._made += self._made
            outer._arrays += self._arrays
            return code
        for made in self._made:
            made.adopt()
        if code == IN_PROGRESS:
            for member in (*self._made, *self._members.values()):
                member.begun("ncclGroupEnd")
        return code


_of_thread = threading.local()

# Of all threads: where there is none, nobody has to ask for the thread's.
OPEN: list[Group] = []


def _stack() -> list[Group]:
    found: list[Group] | None = getattr(_of_thread, "groups", None)
    if found is None:
        found = _of_thread.groups = []
    return found


def current() -> Group | None:
    """Return the innermost group of this thread."""
    stack = _stack()
    return stack[-1] if stack else None


@contextmanager
def group(library: Library | None = None) -> Iterator[Group]:
    """Begin the calls of the block together when it ends: of several communicators, or messages.

    One thread that has several GPUs, and ranks that send and receive at one time, need it: NCCL
    waits for peers in the call else. Where the block raises, NCCL is still told that the group
    ends, as there is no other way out of one: it begins what was called until then.
    """
    opened = Group(library or load())
    opened.begin()
    try:
        yield opened
    except BaseException:
        opened._left(opened._library.function("ncclGroupEnd"))  # the first error is the one to tell
        raise
    opened.end()


class Estimate:
    """What the calls of a block would take: ``seconds``, when it has ended; NaN of no calls."""

    seconds: float = math.nan


@contextmanager
def simulate(library: Library | None = None) -> Iterator[Estimate]:
    """Estimate how long the calls of the block would take as a group; nothing is begun.

    ``with nccl.simulate() as s: ...`` sets ``s.seconds``. Raises UnsupportedError before NCCL 2.22.
    """
    chosen = library or load()
    chosen.function("ncclGroupSimulateEnd")  # or it is too late to say that there is none
    opened, estimate = Group(chosen), Estimate()
    opened.begin()
    try:
        yield estimate
    except BaseException:
        with suppress(NcclError):  # the first error is the one to tell
            opened.simulate()
        raise
    estimate.seconds = opened.simulate()
