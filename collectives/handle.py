# SPDX-License-Identifier: Apache-2.0
"""A native communicator with a safe life: threads, signals, fork and garbage collection."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from collectives._ffi import IN_PROGRESS, check, ffi, lib, text
from collectives.errors import ClosedError, CollectiveError, InvalidArgumentError
from collectives.stopping import raise_what_came

if TYPE_CHECKING:
    from collectives.rivals.explained import NcclTaken
    from collectives.sparse.calls import SparseTaken
    from collectives.sparse.plan import PlanTaken

_resume = lib.coll_resume
_stop = ffi.addressof(lib, "main_asked_to_stop")

# How long close() waits for another thread's call to notice that it was aborted. Calls look every
# 50 ms; a signal handler that closes what its own thread is using waits in vain.
_CLOSING_S = 0.5


class Tracer(Protocol):
    """Who records the calls of communicators (collectives/tracing.py)."""

    def opened(self, handle: Handle) -> None:
        """Hear of one that is new."""

    def closing(self, handle: Handle, native: Any) -> None:
        """Hear of one that is about to end: what it has recorded is lost with it."""


tracing_all: Tracer | None = None  # who records every communicator of this process


class Handle:
    """Owner of a ``coll_comm``. One thread calls at a time; close and abort may come from any."""

    __slots__ = (
        "__weakref__",
        "_door",
        "_ending",
        "_held",
        "_last_sequence",
        "_native",
        "_prepared",
        "_unfinished",
        "_why_gone",
        "door",
        "given_names",
        "last_taken",
        "rank",
        "size",
        "timeout",
        "times_all",
        "tracer",
        "transport",
    )

    def __init__(self, native: Any) -> None:
        """Take over a native communicator."""
        self.rank: int = lib.coll_rank(native)
        self.size: int = lib.coll_ranks(native)
        self.transport: str = text(lib.coll_transport(native))
        self.timeout: float = lib.coll_timeout(native)  # seconds of a call that does not say
        self._native = native
        # What C looks at in the short ways (native/bindings/door.h), and where it lies.
        self._door = ffi.new("coll_door *", {"comm": native})
        self.door = int(ffi.cast("uintptr_t", self._door))
        # Ends the persistent call that was started and is not finished: it keeps _in_call set.
        self._unfinished: Callable[[], object] | None = None
        # What was prepared for persistent calls, and who frees it. Garbage collection may end this
        # before those calls, in any order: so whoever comes first frees it, and it is kept here.
        self._prepared: dict[Any, Callable[[Any], int]] = {}
        # abort() must not meet what close() frees. Re-entrant: signal handlers come at any time.
        self._ending = threading.RLock()
        self._held = 0
        self._last_sequence = 0
        self.given_names: dict[int, str] = {}  # of algorithms of the program, by native number
        self.tracer: Tracer | None = None
        self.times_all = False  # collectives/last.py
        # Of what is several calls, or none, of the native layer.
        self.last_taken: SparseTaken | PlanTaken | NcclTaken | None = None
        lib.coll_tell_times(native, lib.COLL_TIMES_OF_LARGE)
        lib.coll_stop_by(native, _stop, ffi.NULL)
        self._why_gone = f"rank {self.rank} has closed this communicator: make a new one"
        _living.add(self)
        if tracing_all is not None:
            tracing_all.opened(self)

    @property
    def _in_call(self) -> bool:
        return bool(self._door.in_call)

    @_in_call.setter
    def _in_call(self, value: bool) -> None:
        self._door.in_call = value

    @property
    def taken_by_sparse(self) -> Any:
        """What the last sparse allreduce in C's short way took, a coll_sparse_taken."""
        return self._door.sparse_taken

    @property
    def taken_by_plan(self) -> Any:
        """What the last call of a plan in C's short way took, a coll_plan_taken."""
        return self._door.plan_taken

    @property
    def open(self) -> bool:
        """Whether calls are possible."""
        return self._native is not None

    @property
    def sequence(self) -> int:
        """How many collectives were begun."""
        with self._ending:
            if self._native is not None:
                self._last_sequence = lib.coll_sequence(self._native)
            return self._last_sequence

    def call(self, name: str, start: Callable[..., int], *arguments: Any) -> None:
        """Run the collective that ``start(native, *arguments)`` begins, to its end."""
        # No Python runs between these two lines, so no thread and no signal handler comes between;
        # the native layer looks for itself once more.
        if self._in_call:
            self.settle(name)
        self._in_call = True
        native = self._native
        try:
            if native is None:
                raise self.gone(name)
            status = start(native, *arguments)
            # A blocked call comes up for air every 50 ms: here Python runs the signal handlers.
            while status == IN_PROGRESS:
                status = _resume(native)
            if status:
                raise_what_came()
        except BaseException as error:
            self.interrupted(name, error)
            raise
        finally:
            self._in_call = False
        if status:
            check(status)

    @contextmanager
    def held(self, name: str) -> Iterator[Any]:
        """Yield the native communicator for what is no call, and may run beside one.

        close() waits meanwhile; one that comes from a signal handler cannot, but has the thread.
        """
        with self._ending:
            if self._native is None:
                raise self.gone(name)
            self._held += 1
            try:
                yield self._native
            finally:
                self._held -= 1

    def settle(self, name: str) -> None:
        """Finish the persistent call that was started; where there is none, refuse the call."""
        unfinished = self._unfinished
        if unfinished is None:
            raise self.busy(name)
        unfinished()

    def close(self) -> None:
        """Leave; local. A second call does nothing."""
        with self._ending:
            native, self._native = self._native, None
            self._door.comm = ffi.NULL
            if native is None:
                return
            self._last_sequence = lib.coll_sequence(native)
            if self._in_call or self._held:
                lib.coll_abort(native, b"it closed its communicator during a call")
                started, self._unfinished = self._unfinished, None
                if self._held or (started is None and not self._idle_within(_CLOSING_S)):
                    return  # in use further up this very stack: aborted, but not to be freed
                self._in_call = False
            while self._prepared:
                prepared, free = self._prepared.popitem()
                free(prepared)
            if self.tracer is not None:
                self.tracer.closing(self, native)
            check(lib.coll_close(native))

    def keep(self, prepared: Any, free: Callable[[Any], int]) -> None:
        """Own what was prepared for a persistent call, until :meth:`release` or the end."""
        self._prepared[prepared] = free

    def release(self, prepared: Any) -> None:
        """Free what was prepared, unless it went with the communicator.

        It stays until then where a thread is at work on the communicator's end: garbage may be
        collected in the middle of a call for which that thread waits.
        """
        if not self._ending.acquire(blocking=False):
            return
        try:
            free = self._prepared.pop(prepared, None)
            if free is not None:
                free(prepared)
        finally:
            self._ending.release()

    def abort(self, reason: str) -> None:
        """End the present and later calls of all ranks."""
        with self._ending:
            if self._native is None:
                raise self.gone("abort")
            check(lib.coll_abort(self._native, reason.encode("utf-8", "replace")))

    def revoke(self) -> None:
        """End them so that those that live may shrink."""
        with self._ending:
            if self._native is None:
                raise self.gone("revoke")
            check(lib.coll_revoke(self._native))

    def forget(self, why: str) -> None:
        """Drop the native communicator without touching it."""
        self._native = None
        self._door.comm = ffi.NULL
        self._in_call = False
        self._unfinished = None
        self._prepared.clear()
        self._why_gone = why
        self._ending = threading.RLock()  # a thread that fork() left behind may have held it

    def _idle_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._in_call and time.monotonic() < deadline:
            time.sleep(0.001)
        return not self._in_call

    def interrupted(self, name: str, error: BaseException) -> None:
        """Tell the others that this rank left a call by an exception, as of a signal handler."""
        native = self._native
        if native is not None and not isinstance(error, CollectiveError):
            reason = f"it was interrupted in {name} by {type(error).__name__}"
            lib.coll_abort(native, reason.encode())

    def told(self, name: str, status: int) -> None:
        """Raise the error of a call that C has made, or what a signal handler raised in it."""
        try:
            raise_what_came()
        except BaseException as error:
            self.interrupted(name, error)
            raise
        check(status)

    def busy(self, name: str) -> InvalidArgumentError:
        """Return the error of a call that meets another one."""
        return InvalidArgumentError(
            f"{name}: another thread is in a call on this communicator (rank {self.rank}), or this "
            "one is, in whose operation or signal handler this is: one call at a time, or one "
            "communicator per thread"
        )

    def gone(self, name: str) -> ClosedError:
        """Return the error of a call that comes after the end."""
        return ClosedError(f"{name}: {self._why_gone}", self.rank)


_living: weakref.WeakSet[Handle] = weakref.WeakSet()


def living() -> list[Handle]:
    """Return the communicators of this process that are open."""
    return [handle for handle in list(_living) if handle.open]


def _after_fork() -> None:
    """Make the parent's communicators unusable in the child.

    Two processes with one rank would write the same shared memory; even closing it in the child
    would tell the peers that the parent has left.
    """
    for handle in list(_living):
        if handle.open:
            handle.forget(
                f"this communicator belongs to process {os.getppid()}, from which this one was "
                "forked: make a new one in the child, in a job of its own"
            )


os.register_at_fork(after_in_child=_after_fork)
