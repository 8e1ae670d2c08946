# SPDX-License-Identifier: Apache-2.0
"""What all methods of a communicator are called through, and how it waits."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any, NamedTuple

from collectives.errors import ClosedError, CollectiveTimeoutError
from collectives.names import checked_seconds
from collectives.nccl import config as configs
from collectives.nccl import groups
from collectives.nccl.config import Config
from collectives.nccl.constants import IN_PROGRESS, SUCCESS
from collectives.nccl.declarations import ffi
from collectives.nccl.errors import NcclError
from collectives.nccl.library import Library

_SHORTEST, _LONGEST = 20e-6, 1e-3  # seconds between two looks at what is in progress

# Handles of communicators that are open, their library and process.
OPEN: dict[int, tuple[Library, int]] = {}


class Origin(NamedTuple):
    """Where a function of NCCL writes the handle, and what it was told."""

    cell: Any
    config: configs.Made | None
    blocking: bool

    @property
    def struct(self) -> Any:
        """The configuration for C; NULL without one."""
        return ffi.NULL if self.config is None else self.config.struct


def origin(library: Library, config: Config | None, blocking: bool = True) -> Origin:
    """Return a place for a handle; ``blocking`` is what holds where ``config`` does not say."""
    if config is None:
        return Origin(ffi.new("uintptr_t *"), None, blocking)
    told = blocking if config.blocking is None else config.blocking
    if not told:  # NCCL's default is another one
        config = replace(config, blocking=False)
    return Origin(ffi.new("uintptr_t *"), configs.made(ffi, config, library.version), told)


class Caller:
    """A communicator as its methods see it: its handle, its library, and its calls."""

    library: Library
    timeout: float | None
    blocking: bool

    def __init__(
        self,
        library: Library,
        origin: Origin,
        timeout: float | None,
        pending: str = "",
        parent: Caller | None = None,
    ) -> None:
        """Take what a function of NCCL has made, or makes when the group ends."""
        self.library, self.timeout, self.blocking = library, timeout, origin.blocking
        self._origin = origin  # NCCL may read the texts of a configuration later
        self._parent = parent  # which may still have to be waited for
        self._handle, self._ended = 0, False
        self._pending = pending  # the function that may be in progress
        self.busy = True  # whether it is closed, or the next call has to wait first
        self._asked: dict[str, int] = {}
        group = groups.current()
        if group is None:
            self.adopt()
        else:
            group.keep_new(self)

    # ---- what groups call ------------------------------------------------------------------------

    def adopt(self) -> None:
        """Take the handle that NCCL has written."""
        self._handle = int(self._origin.cell[0])
        self.busy = not self._handle or bool(self._pending)
        if self._handle:
            self._parent = None
            OPEN[self._handle] = (self.library, os.getpid())

    def begun(self, function: str) -> None:
        """Take note that a function of this communicator is in progress."""
        self._pending, self.busy = function, True

    # ---- calls -----------------------------------------------------------------------------------

    @property
    def handle(self) -> int:
        """The ``ncclComm_t``, as a number. Raises ClosedError where there is none."""
        if not self._handle and not self._ended:  # a child is there when its parent is done
            if self._parent is not None and self._parent._pending:
                self._parent.wait()
            self.adopt()
        if not self._handle:
            raise ClosedError(
                "the communicator is closed, or is there only when the group ends that makes it"
            )
        return self._handle

    def finish(self, function: str, *arguments: Any, kept: tuple[Any, ...] = ()) -> None:
        """Call a function of NCCL; raise what it reports, take note of what it leaves in progress.

        Arrays that are ``kept`` are held until the group around the call ends.
        """
        if self._pending:
            self.wait()
        code = self.library.function(function)(*arguments)
        group = groups.current()
        if group is not None:
            group.keep(self, kept)
        if code != SUCCESS:
            self.settle(function, code)

    def settle(self, function: str, code: int) -> None:
        """Raise a result that is an error, or take note of one that is in progress."""
        if code != IN_PROGRESS:
            raise self.library.error(function, code, self._handle)
        if groups.current() is None:  # in a group nothing has begun
            self.begun(function)
            self.wait_if_timed()

    def wait_if_timed(self) -> None:
        """Wait for what is in progress where there is a time-out for it."""
        if self._pending and self.timeout is not None:
            self.wait()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until what was begun without blocking is done: that it is enqueued, not computed.

        Of a communicator that blocks nothing is ever in progress. ``timeout`` are seconds, by
        default those of the communicator. Raises CollectiveTimeoutError when they are over, after
        which it may be waited for again, or aborted; NcclError for what has failed.
        """
        seconds = self.timeout if timeout is None else timeout
        last = None
        if seconds is not None:
            last = time.monotonic() + checked_seconds("wait: timeout", seconds)
        code, pause = self._state(), _SHORTEST
        while code == IN_PROGRESS:
            if last is not None and time.monotonic() >= last:
                raise CollectiveTimeoutError(
                    f"{self._pending or 'what was begun'} is still in progress after {seconds:g} s:"
                    " wait() again, or abort()"
                )
            time.sleep(pause)
            code, pause = self._state(), min(2 * pause, _LONGEST)
        function, self._pending, self.busy = self._pending, "", False
        if code != SUCCESS:
            raise self.library.error(function or "ncclCommGetAsyncError", code, self._handle)

    def async_error(self) -> NcclError | None:
        """Return what has failed since, without waiting; None where nothing has."""
        code = self._state()
        if code in (SUCCESS, IN_PROGRESS):
            return None
        return self.library.error("ncclCommGetAsyncError", code, self._handle)

    @property
    def in_progress(self) -> bool:
        """Whether something that was begun without blocking goes on."""
        return self._state() == IN_PROGRESS

    def _state(self) -> int:
        state = ffi.new("int *")
        self.library.call("ncclCommGetAsyncError", self.handle, state)
        return int(state[0])

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """The place of this rank, 0 to ``size - 1``."""
        return self._number("ncclCommUserRank")

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._number("ncclCommCount")

    @property
    def device(self) -> int:
        """The GPU of this rank, by CUDA's number."""
        return self._number("ncclCommCuDevice")

    def told(self, rank: int, size: int) -> None:
        """Take what is known already."""
        self._asked.update(ncclCommUserRank=rank, ncclCommCount=size)

    def _number(self, function: str) -> int:
        found = self._asked.get(function)
        if found is None:
            number = ffi.new("int *")
            self.finish(function, self.handle, number)
            found = self._asked[function] = int(number[0])
        return found

    @property
    def closed(self) -> bool:
        """Whether it is closed, or was not made yet."""
        if not self._handle and not self._ended:
            self.adopt()
        return not self._handle
