# SPDX-License-Identifier: Apache-2.0
"""The thread of a communicator that has calls in flight.

It makes them one after the other: all ranks then make them in the same order, and the native layer,
which releases the interpreter's lock, moves the bytes meanwhile.

A call that this rank alone refuses, as for an index out of range, is one that the others make. The
next one of this rank would meet that one there, and add up what does not belong together. So calls
behind it are not made before the program has heard of it; what it does then is its own decision, as
after a call that raises where it is made.
"""

from __future__ import annotations

import threading
from functools import partial
from queue import SimpleQueue
from typing import Any

from collectives.errors import CollectiveError, InvalidArgumentError, UnsupportedError
from collectives.pending import Job, Pending


class Worker:
    """The thread of one communicator; it begins with the first job."""

    def __init__(self, name: str, turn: Any) -> None:
        """Begin nothing yet. ``turn`` is a lock that is held during each job."""
        self._name, self._turn = name, turn
        self._jobs: SimpleQueue[tuple[int, Pending, Job] | None] = SimpleQueue()
        self._open = threading.Lock()  # guards the numbers, and what was missed
        self._submitted = self._unfinished = 0
        self._missed: BaseException | None = None  # of a call that the others have made
        self._missed_name = ""
        self._heard_at: int | None = None  # the last job from before the program heard of it
        self.at_job = False  # whether its thread does a job, and not what follows from its end
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether jobs are waiting or being done."""
        return self._unfinished > 0

    @property
    def holds_back(self) -> bool:
        """Whether the program has not heard yet of a call that this rank has missed."""
        return self._missed is not None and self._heard_at is None

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
            pending.made_by(self)
            self._submitted += 1
            self._unfinished += 1
            self._jobs.put((self._submitted, pending, job))
        return pending

    def heard(self, error: BaseException | None) -> None:
        """Tell that the program has heard of this error, of a call or of one behind it."""
        while error is not None and error is not self._missed:
            error = error.__cause__
        if error is None:
            return
        with self._open:
            if self._unfinished == 0:
                self._missed = None
            elif self._heard_at is None:
                self._heard_at = self._submitted

    def stop(self) -> None:
        """End the thread when the jobs so far are done."""
        if self._thread is not None:
            self._jobs.put(None)

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None:
            number, pending, job = entry
            why = self._missed
            if why is None:
                pending.run(partial(self._do, pending.name, job))
            else:
                pending.abandon(why, f"{self._missed_name} before it failed on this rank")
            # Nothing of a finished call is kept while the next is waited for.
            del entry, pending, job, why
            with self._open:
                self._unfinished -= 1
                if number == self._heard_at:
                    self._missed = self._heard_at = None

    def _do(self, name: str, job: Job) -> Any:
        with self._turn:
            self.at_job = True
            try:
                return job()
            except BaseException as error:
                if _of_this_rank_alone(error):
                    self._missed, self._missed_name = error, name
                raise
            finally:
                self.at_job = False


def _of_this_rank_alone(error: BaseException) -> bool:
    """Whether nothing was sent. Other errors come to all ranks, or end the communicator."""
    refused = isinstance(error, InvalidArgumentError | UnsupportedError)
    return refused or not isinstance(error, CollectiveError)
