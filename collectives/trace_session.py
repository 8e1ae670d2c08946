# SPDX-License-Identifier: Apache-2.0
"""A trace from its start to its end: what the ranks agree on, and who is recorded.

The native layer records (native/engine/watch.h), in room that is made before. What the ranks tell
each other for the trace goes by a communicator of its own, which no trace records.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from collectives import handle as handles
from collectives._ffi import check, ffi, lib
from collectives.clocks import Offset, clock, offsets
from collectives.default import default
from collectives.errors import CollectiveError, InvalidArgumentError, SystemCallError
from collectives.handle import Handle
from collectives.last import algorithm_name
from collectives.trace_file import EVENT, Part, document, host, packed, unpacked, write
from collectives.trace_target import checked, is_special, unwritable
from collectives.tracing import TraceWarning
from collectives.words import gathered

if TYPE_CHECKING:
    from collectives.communicator import Communicator


class Session:
    """One trace that is under way."""

    def __init__(
        self, comm: Communicator, apart: Communicator, path: Path, told: list[dict[str, Any]]
    ) -> None:
        """Record nobody yet; ``told`` is what each rank has said of itself."""
        self._comm, self._apart, self._path, self._told = comm, apart, path, told
        self._most = 0
        self._handles: list[Handle] = []
        self._numbers: dict[Handle, int] = {}  # in the order in which they came
        self._parts: list[Part] = []
        self._clocks: list[list[Offset]] = []
        self._pid = os.getpid()

    @classmethod
    def begun(cls, given: Communicator | None, path: object, events: object) -> Session:
        """Start a trace, of all communicators where none is given.

        What is wrong with ``path`` or ``events`` on one rank, all raise: the others wait for it.
        """
        comm = default() if given is None else given
        wanted = handles.living() if given is None else [comm._handle]
        file, most, why = checked(path, events)
        own = {
            "refusal": why or _under_way(wanted) or (unwritable(file) if comm.rank == 0 else ""),
            "clock": clock(),
            "host": host(),
            "pid": os.getpid(),
        }
        apart = _untraced_dup(comm)
        try:
            told = [json.loads(words) for words in gathered(apart, json.dumps(own).encode())]
            for rank, said in enumerate(told):
                if said["refusal"]:
                    raise InvalidArgumentError(f"trace: rank {rank}: {said['refusal']}", rank)
            session = cls(comm, apart, file, told)
            session._look_at_clocks()
        except BaseException:
            apart.close()
            raise
        session._most = most
        if given is None:
            handles.tracing_all = session
        for handle in wanted:
            session.opened(handle)
        return session

    # ---- what communicators tell (collectives.handle.Tracer)

    def opened(self, handle: Handle) -> None:
        """Record the calls of a communicator."""
        number = len(self._numbers)
        try:
            with handle.held("trace") as native:
                check(lib.coll_trace_begin(native, self._most))
        except CollectiveError as error:  # there is no room: the program goes on
            text = f"trace: communicator {number} is not recorded: {error}"
            warnings.warn(text, TraceWarning, stacklevel=2)
            return
        self._numbers[handle] = number
        self._handles.append(handle)
        handle.tracer = self

    def closing(self, handle: Handle, native: Any) -> None:
        """Take over what a communicator has recorded."""
        handle.tracer = None
        self._handles.remove(handle)
        if os.getpid() == self._pid:
            self._parts.append(_part(handle, native, self._numbers[handle]))

    # ---- the end

    def end(self, error: BaseException | None) -> None:
        """Stop recording and write the file; ``error``: that of the block."""
        if handles.tracing_all is self:
            handles.tracing_all = None
        if os.getpid() != self._pid:  # a forked child is no rank
            return
        if error is None and not self._comm.closed:
            self._comm._in_order("trace", lambda: None)  # behind the calls in flight
        for handle in list(self._handles):
            if handle.open:
                with handle.held("trace") as native:
                    check(lib.coll_trace_end(native))
                    self.closing(handle, native)
        failure = ""
        try:
            if error is not None and self._apart.size > 1:
                self._apart.abort(f"its block of trace() raised {type(error).__name__}: {error}")
            failure = self._write_together()
        except CollectiveError as why:
            self._write_alone(why)
        finally:
            self._apart.close()
        if failure:
            raise SystemCallError(f"trace: rank 0 {failure}", 0)

    def _look_at_clocks(self) -> None:
        self._clocks.append(offsets(self._apart, [said["clock"] for said in self._told]))

    def _write_together(self) -> str:
        """Write the file of all ranks; return why rank 0 cannot, "" where the file is there."""
        self._look_at_clocks()
        parts = gathered(self._apart, packed(self._parts), root=0)
        failure = ""
        if self._apart.rank == 0:
            by_rank = {rank: unpacked(part) for rank, part in enumerate(parts)}
            try:
                write(self._path, document(self._told, by_rank, self._clocks))
            except OSError as error:
                failure = f"cannot write {self._path}: {error.strerror}"
        said = gathered(self._apart, json.dumps(failure).encode())
        return str(json.loads(said[0]))

    def _write_alone(self, why: CollectiveError) -> None:
        """Write what this rank has recorded, as the ranks cannot do it together."""
        rank = self._apart.rank
        path = self._path.with_suffix(f".rank{rank}{self._path.suffix}")
        end = f"what rank {rank} has recorded is in {path}"
        try:
            if is_special(self._path):  # beside it there is no place for files
                end = f"what rank {rank} has recorded is lost: {self._path} is no regular file"
            else:
                write(path, document(self._told, {rank: self._parts}, self._clocks))
        except OSError as error:
            end = f"nor can rank {rank} write {path} ({error.strerror})"
        text = f"trace: the ranks cannot write {self._path} together ({why}): {end}"
        warnings.warn(text, TraceWarning, stacklevel=5)


def _under_way(wanted: Sequence[Handle]) -> str:
    """Return why this rank cannot begin where one of these is traced already; "" where it can."""
    if handles.tracing_all is not None or any(handle.tracer for handle in wanted):
        return "a trace is under way already: stop it first, traces cannot be nested"
    return ""


def _untraced_dup(comm: Communicator) -> Communicator:
    """Return another communicator of the same ranks, which no trace around this one records."""
    made = comm.dup()
    handle = made._handle
    if handle.tracer is not None:
        with handle.held("trace") as native:
            check(lib.coll_trace_end(native))
            handle.tracer.closing(handle, native)
    return made


def _part(handle: Handle, native: Any, number: int) -> Part:
    """Return what a communicator has recorded, and what is to be said of it."""
    count, dropped = ffi.new("size_t *"), ffi.new("uint64_t *")
    check(lib.coll_trace_read(native, ffi.NULL, 0, count, dropped))
    events = np.zeros(count[0] + 1, EVENT)  # room for one more: an array of none has no address
    room = ffi.from_buffer("coll_trace_event[]", events)
    check(lib.coll_trace_read(native, room, count[0], count, dropped))
    events = events[: len(events) - 1]
    operations = events[events["what"] == lib.COLL_TRACE_OPERATION]
    numbers = np.unique(operations["algorithm"]).tolist()
    return {
        "number": number,
        "rank": handle.rank,
        "size": handle.size,
        "transport": handle.transport,
        "dropped": int(dropped[0]),
        "algorithms": {number: algorithm_name(handle, number) for number in numbers},
        "events": events,
    }
