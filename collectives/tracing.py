# SPDX-License-Identifier: Apache-2.0
"""Tracing, as programs see it; the work is that of :mod:`collectives.trace_session`."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING

from collectives.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.trace_session import Session

EVENTS = 1 << 15  # of a communicator, unless the caller says how many


class TraceWarning(UserWarning):
    """The ranks could not write one file together; the text says where this rank's part is."""


class Trace:
    """Records what ranks do within a ``with`` block, or from :meth:`start` to :meth:`stop`.

    :func:`collectives.trace` and :meth:`Communicator.trace` make it. Once it is stopped it can be
    started again, and then writes its file anew.
    """

    def __init__(self, comm: Communicator | None, path: str | os.PathLike[str], events: int):
        """Record nothing yet. ``comm`` None: the default one, and all of this process."""
        # What is wrong with them is told to all ranks, by start().
        self._comm, self._path, self._events = comm, path, events
        self._session: Session | None = None

    def start(self) -> None:
        """Begin to record. Every rank calls it, between the same two of its calls.

        Raises InvalidArgumentError, on all ranks, where rank 0 cannot write the file, a rank gives
        what is no file name or number of events, or where a communicator is traced already.
        """
        # Not with the package: files and JSON are needed by few programs.
        from collectives.trace_session import Session

        if self._session is not None:
            raise InvalidArgumentError("trace: it was started before: stop it first")
        self._session = Session.begun(self._comm, self._path, self._events)

    def stop(self) -> None:
        """End it. Every rank calls it; rank 0 writes what all have recorded to the file.

        Where that fails, as another rank has died, each rank writes its own part, ``t.rank3.json``
        for ``t.json``, and gives a TraceWarning that says so. Raises SystemCallError, on all
        ranks, where rank 0 cannot write the file; what was there before stays.
        """
        self._end(None)

    def __enter__(self) -> Trace:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it; where the block raised, this rank writes its own part and waits for nobody."""
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        session, self._session = self._session, None
        if session is None:
            raise InvalidArgumentError("trace: it was not started, or has been stopped")
        session.end(error)


def trace(path: str | os.PathLike[str], *, events: int = EVENTS) -> Trace:
    """Record what all ranks do, and when, and write it to a file for Perfetto or Chrome.

    ::

        with cl.trace("t.json"):
            for _ in range(3):
                cl.allreduce(x)

    Every rank enters and leaves the block, or calls start() and stop() of what is returned. Open
    the file at https://ui.perfetto.dev or chrome://tracing: a row for each rank, with its
    collectives and messages, their steps, and whom it waits for, on one clock (docs/tracing.md).

    Recorded are the default communicator and all others that this process has or makes in the
    block. Each keeps ``events`` events; what comes then is counted, and the file says so. Entering
    the block raises InvalidArgumentError, on all ranks, where rank 0 cannot write ``path`` (a pipe,
    say), a rank gives what is no path or number, or within another trace. Leaving it raises
    SystemCallError, on all ranks, where the disk is full.
    """
    return Trace(None, path, events)
