# SPDX-License-Identifier: Apache-2.0
"""Calls that go on while the program does something else.

A communicator with such calls has one thread of its own, which makes them one after the other: all
ranks then make them in the same order, and the native layer, which releases the interpreter's lock,
moves the bytes meanwhile.

asyncio and concurrent.futures, which take as long to load as all of this package, are imported by
the first call that needs them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from collectives.errors import (
    ClosedError,
    CollectiveError,
    CollectiveTimeoutError,
    InvalidArgumentError,
)
from collectives.names import checked_seconds

if TYPE_CHECKING:
    from asyncio import Task
    from concurrent.futures import Future

Job: TypeAlias = Callable[[], Any]

_forks = 0  # of this process and its forebears


class Block:
    """Who is in a ``group()`` block, and would wait there in vain for one of its calls."""

    def __init__(self) -> None:
        """Remember the thread and asyncio task that call."""
        self._thread = threading.get_ident()
        self._task = _present_task()

    def holds_up_wait(self) -> bool:
        """Whether the block cannot end while the caller sleeps."""
        return self._thread == threading.get_ident()

    def holds_up_await(self) -> bool:
        """Whether the block cannot end while the calling task sleeps."""
        return self._thread == threading.get_ident() and self._task is _present_task()


class Pending:
    """A collective in flight, as ``async_op=True`` returns it. Any thread may wait for it.

    The arrays of the call belong to the library until it is done. ``await pending`` gives the
    result in asyncio. It cannot be cancelled: the other ranks count on it; an ``await`` that is
    cancelled leaves it running.

    In a ``group()`` it begins at the end of the block; before, whoever is in the block is refused
    to wait for it. Where the block raises, or a call before it in the group fails, it is not made,
    and ends with an error that says so.
    """

    def __init__(self, name: str, block: Block | None = None) -> None:
        """Not begun yet; with a block not before that has ended. The library makes these."""
        from concurrent.futures import Future

        self._name = name
        self._block = block
        self._maker: threading.Thread | None = None
        self._ended = False
        self._forks = _forks
        self._future: Future[Any] = Future()
        self._future.set_running_or_notify_cancel()

    def wait(self, timeout: float | None = None) -> Any:
        """Wait until it is done and return what the call returns; raise what it raises.

        Raises CollectiveTimeoutError when it is not done after ``timeout`` seconds; the call then
        goes on, bounded by its own time-out. Raises InvalidArgumentError within the ``group()``
        block at whose end it begins, and in the thread that makes it, before it is its turn.
        """
        seconds = None if timeout is None else checked_seconds("wait: timeout", timeout)
        block = self._awaited_block()
        if block is not None and block.holds_up_wait():
            raise self._too_early()
        self._check_turn()
        self._check_fork()
        try:
            return self._future.result(seconds)
        except TimeoutError:
            if self._future.done():  # the call itself has timed out, or has just ended
                return self._future.result()
        state = "it goes on" if self._awaited_block() is None else "its group has not launched it"
        raise CollectiveTimeoutError(f"{self._name} is not done after {timeout} s: {state}")

    def result(self, timeout: float | None = None) -> Any:
        """Do as :meth:`wait`."""
        return self.wait(timeout)

    def done(self) -> bool:
        """Whether the call has ended, well or not. Never waits."""
        return self._ended

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait until it is done and return what it raised, None where it ended well."""
        try:
            self.wait(timeout)
        except Exception:
            if not self._future.done():
                raise
        return self._future.exception()

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait in asyncio: the loop is woken once, by the thread that finishes the call."""
        block = self._awaited_block()
        if block is not None and block.holds_up_await():
            raise self._too_early()
        self._check_turn()
        self._check_fork()
        import asyncio

        return asyncio.shield(asyncio.wrap_future(self._future)).__await__()

    def __repr__(self) -> str:
        """Tell the call and how far it is."""
        state = "in flight"
        if self._ended:
            state = "failed" if self._future.exception() else "done"
        return f"<Pending {self._name}, {state}>"

    def launch(self) -> None:
        """Tell that its block does not keep it any more."""
        self._block = None

    def made_by(self, thread: threading.Thread) -> None:
        """Tell in which thread it begins, when those before it are done."""
        self._maker = thread

    def made_as(self, group: Pending) -> None:
        """Tell that it begins with its group."""
        self._maker = group._maker

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
        self._ended = True
        self._future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Raise an error in everybody who waits."""
        self._ended = True
        self._future.set_exception(error)

    def abandon(self, why: BaseException) -> None:
        """End, if it has not ended, since it will not be made."""
        if self._ended:
            return
        if isinstance(why, CollectiveError):  # the class tells whether the communicator works on
            before = "because a call of its group failed"
            error = type(why)(f"{self._name} was not made, {before}: {why}", why.rank)
        else:
            kind = type(why).__name__
            error = CollectiveError(
                f"{self._name} was not made, because its group was left by {kind}: {why}"
            )
        error.__cause__ = why
        self.launch()
        self.fail(error)

    def when_ended(self, then: Callable[[], None]) -> None:
        """Call something when it has ended; at once where it has."""
        self._future.add_done_callback(lambda _: then())

    def outcome(self) -> tuple[Any, BaseException | None]:
        """Return the result and the error of one that has ended."""
        error = self._future.exception()
        return (self._future.result() if error is None else None), error

    def _awaited_block(self) -> Block | None:
        return self._block

    def _makers(self) -> list[threading.Thread | None]:
        return [self._maker]

    def _check_turn(self) -> None:
        if not self._ended and threading.current_thread() in self._makers():
            raise InvalidArgumentError(
                f"{self._name}: it begins when what waits for it here has ended: wait elsewhere"
            )

    def _too_early(self) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{self._name}: it begins at the end of its group: wait after the with block"
        )

    def _check_fork(self) -> None:
        if self._forks != _forks and not self._ended:
            raise ClosedError(
                f"{self._name}: it belongs to process {os.getppid()}, from which this one was "
                "forked: only there it can be waited for"
            )


class Whole(Pending):
    """Several collectives in flight as one: it has ended when the last of them has."""

    def __init__(
        self, name: str, parts: Sequence[Pending], build: Callable[[list[Any]], Any]
    ) -> None:
        """Watch the parts; ``build`` makes the result of theirs."""
        super().__init__(name)
        self._parts, self._build = parts, build
        self._missing = len(parts)
        self._counting = threading.Lock()
        for part in parts:
            part.when_ended(self._one_more)
        if not parts:
            self.finish(build([]))

    def _one_more(self) -> None:
        with self._counting:
            self._missing -= 1
            if self._missing:
                return
        outcomes = [part.outcome() for part in self._parts]
        self._parts = ()
        for _, error in outcomes:
            if error is not None:
                self.fail(error)
                return
        self.run(lambda: self._build([result for result, _ in outcomes]))

    def _awaited_block(self) -> Block | None:
        blocks = (part._block for part in self._parts)
        return next((block for block in blocks if block is not None), None)

    def _makers(self) -> list[threading.Thread | None]:
        return [part._maker for part in self._parts]


class Worker:
    """The thread of one communicator; it begins with the first job."""

    def __init__(self, name: str, turn: Any) -> None:
        """Begin nothing yet. ``turn`` is a lock that is held during each job."""
        self._name, self._turn = name, turn
        self._jobs: SimpleQueue[tuple[Pending, Job] | None] = SimpleQueue()
        self._open = threading.Lock()  # guards the next two
        self._unfinished = 0
        self.at_job = False  # whether its thread does a job, and not what follows from its end
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
        """Append a job, whose outcome the handle gets; nothing is appended where this raises."""
        with self._open:
            if self._thread is None or not self._thread.is_alive():  # not begun, or lost in a fork
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                thread.start()
                self._thread = thread
            pending.made_by(self._thread)
            self._unfinished += 1
            self._jobs.put((pending, job))
        return pending

    def stop(self) -> None:
        """End the thread when the jobs so far are done."""
        if self._thread is not None:
            self._jobs.put(None)

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None:
            pending, job = entry
            pending.run(partial(self._do, job))
            # Nothing of a finished call is kept while the next is waited for.
            del entry, pending, job
            with self._open:
                self._unfinished -= 1

    def _do(self, job: Job) -> Any:
        with self._turn:
            self.at_job = True
            try:
                return job()
            finally:
                self.at_job = False


def _present_task() -> Task[Any] | None:
    if "asyncio" not in sys.modules:  # then no task runs
        return None
    import asyncio

    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def _after_fork() -> None:
    """No thread of the parent goes on in the child, so nobody finishes its calls there."""
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)
