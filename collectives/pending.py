# SPDX-License-Identifier: Apache-2.0
"""Calls that go on while the program does something else.

A communicator with such calls has one thread of its own, which makes them one after the other: all
ranks then make them in the same order, and the native layer, which releases the interpreter's lock,
moves the bytes meanwhile.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Generator
from queue import SimpleQueue
from typing import Any, TypeAlias

from collectives.errors import CollectiveTimeoutError
from collectives.names import checked_seconds

Job: TypeAlias = Callable[[], Any]


class Pending:
    """A collective in flight, as ``async_op=True`` returns it. Any thread may wait for it.

    The arrays of the call belong to the library until it is done. ``await pending`` gives the
    result in asyncio. It cannot be cancelled: the other ranks count on it; an ``await`` that is
    cancelled leaves it running.
    """

    def __init__(self, name: str) -> None:
        """Not begun yet. The library makes these."""
        self._name = name
        self._future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._future.set_running_or_notify_cancel()

    def wait(self, timeout: float | None = None) -> Any:
        """Wait until it is done and return what the call returns; raise what it raises.

        Raises CollectiveTimeoutError when it is not done after ``timeout`` seconds; the call then
        goes on, bounded by its own time-out.
        """
        seconds = None if timeout is None else checked_seconds("wait: timeout", timeout)
        try:
            return self._future.result(seconds)
        except concurrent.futures.TimeoutError:
            if self._future.done():  # the call itself has timed out
                raise
        raise CollectiveTimeoutError(f"{self._name} is not done after {timeout} s: it goes on")

    def result(self, timeout: float | None = None) -> Any:
        """Do as :meth:`wait`."""
        return self.wait(timeout)

    def done(self) -> bool:
        """Whether the call has ended, well or not. Never waits."""
        return self._future.done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait until it is done and return what it raised, None where it ended well."""
        try:
            self.wait(timeout)
        except Exception as error:
            if not self._future.done():
                raise
            return error
        return None

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait in asyncio: the loop is woken once, by the thread that finishes the call."""
        return asyncio.shield(asyncio.wrap_future(self._future)).__await__()

    def __repr__(self) -> str:
        """Tell the call and how far it is."""
        state = "in flight"
        if self._future.done():
            state = "failed" if self._future.exception() else "done"
        return f"<Pending {self._name}, {state}>"

    def run(self, job: Job) -> None:
        """Do the work, on the thread that calls."""
        try:
            result = job()
        except BaseException as error:
            self.fail(error)
        else:
            self.finish(result)

    def finish(self, result: Any) -> None:
        """Give everybody who waits the result."""
        self._future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Raise an error in everybody who waits."""
        self._future.set_exception(error)


class Worker:
    """The thread of one communicator; it begins with the first job."""

    def __init__(self, name: str) -> None:
        """Begin nothing yet."""
        self._name = name
        self._jobs: SimpleQueue[tuple[Pending, Job] | None] = SimpleQueue()
        self._open = threading.Lock()  # guards the next two
        self._unfinished = 0
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether jobs are waiting or being done."""
        return self._unfinished > 0

    @property
    def thread(self) -> threading.Thread | None:
        """The thread, once it has begun."""
        return self._thread

    def submit(self, pending: Pending, job: Job) -> Pending:
        """Append a job, whose outcome the handle gets."""
        with self._open:
            self._unfinished += 1
            self._jobs.put((pending, job))
            if self._thread is None or not self._thread.is_alive():  # not begun, or lost in a fork
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
        return pending

    def stop(self) -> None:
        """End the thread when the jobs so far are done."""
        if self._thread is not None:
            self._jobs.put(None)

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None:
            pending, job = entry
            pending.run(job)
            # Nothing of a finished call is kept while the next is waited for.
            del entry, pending, job
            with self._open:
                self._unfinished -= 1
