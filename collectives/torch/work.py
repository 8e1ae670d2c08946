# SPDX-License-Identifier: Apache-2.0
"""What torch gets for a call in flight: it waits, raises what went wrong, and makes futures.

torch's own Work that is made of a future swallows errors, so this one is asked itself. Callbacks of
a future run on the thread that completes it, and may wait for other collectives, as PowerSGD's hook
does: no thread that a collective needs may be that one.

A call of tensors on a GPU is done for the host when it is enqueued; who waits for it lets the
current stream come after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from collectives.errors import CollectiveError
from collectives.torch.on_gpu import Lanes, current, future_on
from collectives.torch.options import seconds_of
from collectives.torch.wording import in_torchs_words

if TYPE_CHECKING:
    from collectives.pending import Pending
    from collectives.torch.profiled import Event


_begin = distributed.Work.__init__


class Work(distributed.Work):
    """A call, done or in flight."""

    # Of the class, as far as they stay: one is made for each call.
    _source = -1
    _call: Pending | None = None
    _future: Any = None
    _event: Event | None = None
    _lanes: Lanes = ()

    def __init__(self, result: list[Any], call: Pending | None = None, lanes: Lanes = ()) -> None:
        """Watch a call; None: it is done, or enqueued on ``lanes``. A future gets ``result``."""
        _begin(self)
        self._result = result
        if call is not None:
            self._call = call
        if lanes:
            self._lanes = lanes

    @property
    def call(self) -> Pending | None:
        """What is in flight; None where it was done at once."""
        return self._call

    @property
    def lanes(self) -> Lanes:
        """The streams of GPUs that it is made on; none for tensors in CPU memory."""
        return self._lanes

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until it is done; raise what the call raised.

        On a GPU until it is enqueued, which ``timeout`` bounds as well: what the current stream
        gets from then on comes after it.
        """
        if self._call is not None:
            self._wait_for(self._call, timeout)
        for lane in self._lanes:
            lane.lead()
        return True

    def _wait_for(self, call: Pending, timeout: timedelta | float | None) -> None:
        try:
            found = call.wait(None if timeout is None else seconds_of(timeout))
        except CollectiveError as error:
            in_torchs_words(error)
            raise
        if self._event is not None:
            self._event.wait()
        if isinstance(found, int):
            self._source = found

    def synchronize(self) -> None:
        """Wait, in the same way."""
        self.wait()

    block_current_stream = synchronize

    def is_completed(self) -> bool:
        """Whether it has ended, well or not; on a GPU, whether that has done it."""
        return (self._call is None or self._call.done()) and self._passed()

    def is_success(self) -> bool:
        """Whether it has ended well; on a GPU, whether that has done it."""
        call = self._call
        ended_well = call is None or (call.done() and call.exception() is None)
        return ended_well and self._passed()

    def _passed(self) -> bool:
        return all(lane.passed() for lane in self._lanes)

    def exception(self) -> BaseException | None:
        """Return what it raised, None where it ended well or goes on."""
        if self._call is None or not self._call.done():
            return None
        error = self._call.exception()
        return None if error is None else in_torchs_words(error)

    def result(self) -> list[Any]:
        """Return the tensors of the result."""
        return self._result

    def source_rank(self) -> int:
        """Return who sent what a receive from any rank has got."""
        return self._source

    _source_rank = source_rank

    def show(self, event: Event) -> None:
        """Let an event of the profiler end with the call."""
        if self._call is None:
            event.end()
        else:
            self._event = event
            self._call.when_ended(event.end)

    def get_future(self) -> torch.futures.Future[Any]:
        """Return a future of the tensors of the result; of a call that failed a RuntimeError.

        What C++ waits for, as DistributedDataParallel does, sees no error that was set from Python:
        it would take it for the result. An error of a callback it does see.

        On a GPU it has its result when the call is enqueued, and callbacks run on streams that come
        after it, as torch has it for futures of such tensors.
        """
        if self._future is None:
            ended = future_on(self._lanes)
            self._future = ended.then(self._outcome)

            def end() -> None:
                with current(self._lanes):  # callbacks run on the GPU that is current here
                    ended.set_result(None)

            if self._call is None or self._call.done():  # nobody can wait in a callback yet
                end()
            else:
                self._call.when_ended(lambda: COMPLETERS.run(end))
        return self._future

    def _outcome(self, _: Any) -> list[Any]:
        error = None if self._call is None else self._call.outcome()[1]
        if error is not None:
            raise in_torchs_words(error)
        for lane in self._lanes:  # before a stream of the future's own, which is the current one
            lane.lead()
        return self._result


class Completers:
    """Threads that complete futures: as many as wait in callbacks, and one that is idle."""

    def __init__(self) -> None:
        """Begin no thread yet."""
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._guard = threading.Lock()
        self._idle = self._unfinished = 0
        self._stopped = False

    def run(self, job: Callable[[], None]) -> None:
        """Do a job on a thread that nothing else is waiting for."""
        with self._guard:
            if self._stopped:
                return
            self._unfinished += 1
            if self._idle == 0:
                threading.Thread(
                    target=self._work, name="collectives completes futures", daemon=True
                ).start()
            else:
                self._idle -= 1
            self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            with self._guard:
                self._unfinished -= 1
                self._idle += 1

    def stop(self, seconds: float) -> None:
        """Begin no job any more, and wait for those under way, at most so long."""
        self._stopped = True
        end = time.monotonic() + seconds
        while self._unfinished and time.monotonic() < end:
            time.sleep(1e-3)


COMPLETERS = Completers()
