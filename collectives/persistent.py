# SPDX-License-Identifier: Apache-2.0
"""Calls that are checked, planned and bound to their arrays once, and begun as often as wanted.

A small collective costs less than looking at its arguments: MPI-4 (section 6.13, "Persistent
Collective Communication Operations") has the same idea.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from collectives import arrays
from collectives._ffi import IN_PROGRESS, check, ffi, lib
from collectives.arrays import Array, Operand
from collectives.caller import NOTHING, Caller
from collectives.errors import AbortedError, CollectiveError, InvalidArgumentError
from collectives.exchanged import refuse_exchanged, watched
from collectives.gpu_arrays import place_of
from collectives.movements import Movements
from collectives.names import Options, how
from collectives.operations import Operation, operation_of, raise_failure_of
from collectives.plain_calls import PlainPersistent
from collectives.reductions import Reductions

_run = lib.coll_run_persistent
_start = lib.coll_start
_finish = lib.coll_finish


class PersistentCall(PlainPersistent):
    """A collective that is made again and again: ``call()``, or ``call.start()``, ``call.wait()``.

    It works on the arrays that it was made for, in the state in which they are when it is begun,
    and returns the same result array every time. A tensor whose memory is another one by then
    (``x.data = ...``, ``resize_()``) is refused: InvalidArgumentError. An array of NumPy that is
    made read-only afterwards is still written, as through a view that was taken before. All ranks
    begin it in the same order among their other calls. It ends with its communicator.
    """

    _native: Any
    __slots__ = (
        "__weakref__",
        "_begun",
        "_failure",
        "_handle",
        "_kept",
        "_name",
        "_native",
        "_op",
        "_tensors",
    )

    def __init__(
        self,
        comm: Caller,
        name: str,
        request: Any,
        kept: Any,
        target: Operand | None,
        op: Operation | None,
    ) -> None:
        """Take over a ``coll_call`` and what it points to. ``Communicator.persistent`` does it."""
        self._made_for(comm, name, kept, target, op)
        place = ffi.new("coll_persistent **")
        comm._call(name, lambda native: lib.coll_persistent_new(native, request, place))
        self._native = place[0]
        # C begins it without Python where there is nothing to look at before.
        self._address = 0 if self._tensors else int(ffi.cast("uintptr_t", place[0]))
        self._kind = int(request.kind)
        self._handle.keep(self._native, lib.coll_persistent_free)

    def _made_for(
        self, comm: Caller, name: str, kept: Any, target: Operand | None, op: Operation | None
    ) -> None:
        """Set all but what the native layer gives."""
        self._comm, self._handle, self._door = comm, comm._handle, comm._door
        self._name, self._kept, self._op = name, kept, op
        self._tensors = watched(kept[0], target)
        # Of a torch tensor autograd must be told.
        told = target is None or type(target.array) is np.ndarray
        self._target = None if told else target
        self._result = None if target is None else target.origin
        self._native = NOTHING
        self._address = 0  # of what is not freed
        self._begun = False  # by start(), and wait() has not been asked
        self._failure: CollectiveError | None = None  # of what was started last

    def _otherwise(self, status: int) -> Array:
        """Do what C leaves of a call.

        ``status`` is that of one which failed; below 0 none was made.
        """
        if status > 0:
            self._fail(status)
        refuse_exchanged(self._name, self._tensors)
        self._in_turn(_run)
        return self._result if self._target is None else arrays.delivered(self._target)

    def start(self) -> None:
        """Begin it and return; until :meth:`wait` its arrays belong to the library.

        One call of a communicator is in progress at a time: any other call on it first waits for
        this one.
        """
        handle = self._handle
        if self._tensors:
            refuse_exchanged(self._name, self._tensors)
        if handle._in_call or not self._comm._plain or handle._native is None:
            self._in_turn(_start)
        elif status := _start(self._native):
            self._fail(status)
        handle._in_call, handle._unfinished = True, self.wait
        self._begun, self._failure = True, None

    def wait(self) -> Array:
        """Wait until what was started is done, and return the result; without a start, at once.

        What has failed raises the same error again until the next start, also where another call,
        which waited for this one, met the error first.
        """
        if self._begun:
            self._begun = False
            self._end()
        if self._failure is not None:
            raise self._failure
        return self._result if self._target is None else arrays.delivered(self._target)

    def _end(self) -> None:
        handle = self._handle
        if handle._unfinished != self.wait:  # close(), or a fork, has come between
            self._failure = handle.gone(self._name)
            return
        handle._unfinished = None
        try:
            status = _finish(self._native)
            while status == IN_PROGRESS:  # up for air, so that Python runs signal handlers
                status = _finish(self._native)
            if status:
                self._fail(status)
        except CollectiveError as error:
            self._failure = error
        except BaseException as error:
            handle.interrupted(self._name, error)
            self._failure = AbortedError(
                f"{self._name}: it was interrupted by {type(error).__name__}", handle.rank
            )
            raise
        finally:
            handle._in_call = False

    def free(self) -> None:
        """Give up what the library keeps for it; it cannot be begun any more.

        Raises InvalidArgumentError while it is in progress.
        """
        if self._begun and self._handle._unfinished == self.wait:
            raise InvalidArgumentError(
                f"{self._name}: this persistent call is in progress: wait() before free()"
            )
        native, self._native, self._address = self._native, NOTHING, 0
        if native:
            self._handle.release(native)

    def __repr__(self) -> str:
        """Tell the call and whether it can be begun."""
        there = self._native and self._handle.open
        return f"<PersistentCall {self._name}{'' if there else ', freed'}>"

    def __del__(self) -> None:
        """Give up what the library keeps for it."""
        try:
            self.free()
        except Exception:
            return  # at interpreter exit even names may be gone

    def _in_turn(self, begin: Callable[[Any], int]) -> None:
        """Begin it behind the calls in flight, or of the group, or the one that was started."""

        def call(native: Any) -> int:
            status = begin(self._native)
            if not self._native:
                self._fail(status)
            return status

        if self._handle._unfinished is not None:
            self._handle.settle(self._name)
        self._comm._call(self._name, call)

    def _fail(self, status: int) -> NoReturn:
        if not self._handle.open:
            raise self._handle.gone(self._name)
        if not self._native:
            raise InvalidArgumentError(
                f"{self._name}: this persistent call was freed: make a new one"
            )
        try:
            check(status)
        except CollectiveError as error:
            raise_failure_of(self._op, self._name, error)
            raise
        raise AssertionError(status)


class PersistentCalls(Reductions, Movements):
    """The collectives of a communicator, each of which returns a :class:`PersistentCall`.

    Arguments are those of the collective of the same name, but for ``async_op``, which start()
    is. Arrays must be contiguous: of others only a copy would be bound. Where lengths are asked
    for (allgatherv and the like without counts), making the call is a collective itself, and so it
    is of arrays on a GPU: docs/gpu.md.
    """

    def __init__(self, comm: Caller) -> None:
        """For ``Communicator.persistent``."""
        super().__init__(comm._handle)
        self._comm = comm
        self._call = comm._call
        self._deferred = []
        self._plain = False  # no call is made at once

    def group(self) -> NoReturn:
        """Refuse it with InvalidArgumentError: ``comm.group()`` takes persistent calls, too."""
        raise InvalidArgumentError("group: it is of the communicator: with comm.group()")

    def barrier(
        self,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """As the barrier of a communicator."""
        options = how("barrier", algorithm, mode, timeout)
        return self._begin("barrier", "barrier", None, None, options, async_op=async_op)

    def _begin(
        self,
        name: str,
        kind: str,
        source: Operand | None,
        target: Operand | None,
        options: Options,
        *,
        op: int = 0,
        root: int = 0,
        count: int | None = None,
        counts: Sequence[int] | None = None,
        async_op: bool = False,
    ) -> PersistentCall:
        if async_op:
            raise InvalidArgumentError(f"{name}: a persistent call has start() instead of async_op")
        for given in (source, target):
            if given is not None and given.packed is not None:
                raise InvalidArgumentError(
                    f"{name}: a persistent call takes contiguous arrays: pass a contiguous one"
                )
        made = self._comm._request(kind, source, target, options, op, root, count, counts)
        request, lengths = made
        if place_of(name, source, target).device >= 0:
            from collectives.gpu_persistent import GpuPersistentCall  # where there is a GPU

            sides = (source, target)
            return GpuPersistentCall(
                self._comm, name, request, (source, lengths), sides, operation_of(op)
            )
        return PersistentCall(
            self._comm, name, request, (source, lengths), target, operation_of(op)
        )

    def _collected(self) -> None:
        """Collect nothing: these are of no group."""

    def _alone(self, name: str, run: Callable[[str], Any], async_op: bool) -> NoReturn:
        raise InvalidArgumentError(
            f"{name}: a persistent call is there of plain arrays, without compress and Adasum: "
            "make the collective itself"
        )

    def _each(self, name: str, tree: Any, make: Callable[[Any], Any], async_op: bool) -> NoReturn:
        raise InvalidArgumentError(
            f"{name}: a persistent call takes one array, not a {type(tree).__name__}: "
            "make one for each"
        )
