# SPDX-License-Identifier: Apache-2.0
"""Calls that go on while the program does something else (collectives/worker.py makes them).

asyncio and concurrent.futures, which take as long to load as all of this package, are imported by
the first call that needs them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
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

    from collectives.worker import Worker

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

        self.name = name
        self._block = block
        self._worker: Worker | None = None
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
        finally:
            self._tell_worker()
        state = "it goes on" if self._awaited_block() is None else "its group has not launched it"
        raise CollectiveTimeoutError(f"{self.name} is not done after {timeout} s: {state}")

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
        return self._awaited().__await__()

    async def _awaited(self) -> Any:
        import asyncio

        try:
            return await asyncio.shield(asyncio.wrap_future(self._future))
        finally:
            self._tell_worker()

    def _tell_worker(self) -> None:
        """Let who makes the calls know that the program hears how this one has ended."""
        if self._worker is not None and self._worker.holds_back and self._ended:
            self._worker.heard(self._future.exception())

    def __repr__(self) -> str:
        """Tell the call and how far it is."""
        state = "in flight"
        if self._ended:
            state = "failed" if self._future.exception() else "done"
        return f"<Pending {self.name}, {state}>"

    def launch(self) -> None:
        """Tell that its block does not keep it any more."""
        self._block = None

    def made_by(self, worker: Worker) -> None:
        """Tell in whose thread it begins, when those before it are done."""
        self._worker = worker

    def made_as(self, group: Pending) -> None:
        """Tell that it begins with its group."""
        self._worker = group._worker

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

    def abandon(self, why: BaseException, before: str = "") -> None:
        """End, if it has not ended, since it will not be made.

        ``before``: what has failed by ``why``; by default, what its group was made of.
        """
        if self._ended:
            return
        ours = isinstance(why, CollectiveError)
        if not before:
            left = f"its group was left by {type(why).__name__}"
            before = "a call of its group failed" if ours else left
        text = f"{self.name} was not made, because {before}: {why}"
        # The class tells whether the communicator works on.
        error = (
            type(why)(text, why.rank) if isinstance(why, CollectiveError) else CollectiveError(text)
        )
        error.__cause__ = why
        self.launch()
        self.fail(error)

    def when_ended(self, then: Callable[[], None]) -> None:
        """Call something when it has ended; at once where it has."""
        self._future.add_done_callback(lambda _: then())

    def when_failed(self, then: Callable[[BaseException], None]) -> None:
        """Call something with its error when it has failed; at once where it has."""

        def look() -> None:
            _, error = self.outcome()
            if error is not None:
                then(error)

        self.when_ended(look)

    def outcome(self) -> tuple[Any, BaseException | None]:
        """Return the result and the error of one that has ended."""
        error = self._future.exception()
        return (self._future.result() if error is None else None), error

    def _awaited_block(self) -> Block | None:
        return self._block

    def _workers(self) -> list[Worker | None]:
        return [self._worker]

    def _check_turn(self) -> None:
        here = threading.current_thread()
        if not self._ended and any(w is not None and w.thread is here for w in self._workers()):
            raise InvalidArgumentError(
                f"{self.name}: it begins when what waits for it here has ended: wait elsewhere"
            )

    def _too_early(self) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{self.name}: it begins at the end of its group: wait after the with block"
        )

    def _check_fork(self) -> None:
        if self._forks != _forks and not self._ended:
            raise ClosedError(
                f"{self.name}: it belongs to process {os.getppid()}, from which this one was "
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
        parts, self._parts = self._parts, ()
        for part, (_, error) in zip(parts, outcomes, strict=True):
            if error is not None:
                self._worker = part._worker
                self.fail(error)
                return
        self.run(lambda: self._build([result for result, _ in outcomes]))

    def _awaited_block(self) -> Block | None:
        blocks = (part._block for part in self._parts)
        return next((block for block in blocks if block is not None), None)

    def _workers(self) -> list[Worker | None]:
        return [part._worker for part in self._parts]


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
