# SPDX-License-Identifier: Apache-2.0
"""Messages of a torch group: each send and receive goes on by itself, whatever the program does.

A communicator moves its messages in calls, one at a time. So whoever waits for a message makes
them, and moves all others on as well; a thread looks after those for which nobody waits.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import torch

from collectives.errors import ClosedError, CollectiveError, CollectiveTimeoutError
from collectives.pending import Pending
from collectives.request import ANY_SOURCE, Request
from collectives.torch.on_gpu import Lanes, current, lanes_of
from collectives.torch.options import seconds_of
from collectives.torch.work import Work

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_SOON, _LONGEST = 20e-6, 1e-3  # seconds between two looks of the thread
_TURN = 1e-3  # so long one waits within a call, while others who wait cannot
_SHORT_TURN = 2e-4  # of the thread
_IDLE_LOOKS = 50  # without a message, before the thread waits to be woken


class Wanted(NamedTuple):
    """A message that is to begin."""

    pending: Pending
    sends: bool
    tensor: torch.Tensor
    rank: int | None
    tag: int
    lanes: Lanes  # the stream of its tensor, on a GPU; the thread that makes a call has others


class Moving(NamedTuple):
    """A message under way."""

    pending: Pending
    sends: bool
    request: Request
    end: float  # by the monotonic clock
    seconds: float  # that it has in all
    lanes: Lanes


class MessageWork(Work):
    """A send or receive in flight: who waits for it moves it on."""

    def __init__(
        self, tensor: torch.Tensor, call: Pending, messages: Messages, lanes: Lanes
    ) -> None:
        """Watch a message of ``messages``; one to a GPU is there when it has ended."""
        super().__init__([tensor], call, lanes)
        self._messages = messages

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until it is done; raise what it raised."""
        seconds = None if timeout is None else seconds_of(timeout)
        assert self._call is not None
        if not self._messages.finished(self._call, seconds):
            raise CollectiveTimeoutError(f"a message is not done after {seconds} s: it goes on")
        return super().wait()

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        self._messages.move()
        return super().is_completed()


def _after(seconds: float, error: CollectiveTimeoutError) -> CollectiveTimeoutError:
    """Return what the last look at a message has found, with how long it was looked at in all."""
    text = re.sub(r"gave up after [\d.e-]+ s", f"gave up after {seconds:g} s", str(error))
    return CollectiveTimeoutError(text.replace("; the request goes on", ""), error.rank)


class Messages:
    """All messages of a group, on a communicator that nobody else uses."""

    def __init__(self, communicator: Communicator, seconds: float) -> None:
        """Take over the communicator; the thread begins with the first message that needs it.

        `seconds`: so long a message may take.
        """
        self.communicator, self._seconds = communicator, seconds
        self._wanted: deque[Wanted] = deque()
        self._moving: list[Moving] = []
        self._calling = threading.Lock()  # held by whoever is in a call on the communicator
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._asleep = self._closing = False

    def send(self, tensor: torch.Tensor, rank: int, tag: int) -> Work:
        """Begin to send."""
        return self._post("send", True, tensor, rank, tag)

    def receive(self, tensor: torch.Tensor, rank: int | None, tag: int) -> Work:
        """Begin to receive; None: from any rank."""
        return self._post("recv", False, tensor, rank, tag)

    def set_timeout(self, seconds: float) -> None:
        """Set for how long a message may take that begins from now on."""
        self._seconds = seconds

    def move(self) -> None:
        """Move all messages on, unless another thread does: it begins what is wanted, too."""
        while self._calling.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._calling.release()
            if not self._wanted:  # what came while this thread held the lock
                return

    def finished(self, pending: Pending, seconds: float | None) -> bool:
        """Move messages on until this one has ended; return whether it has, after so long."""
        end = None if seconds is None else time.monotonic() + seconds
        while not pending.done():
            left = _TURN if end is None else min(_TURN, end - time.monotonic())
            if left <= 0:
                return False
            if self._calling.acquire(timeout=left):
                try:
                    self._wait_for(pending, left)
                finally:
                    self._calling.release()
        return True

    def close(self) -> None:
        """End when all that this rank sends is with the others; receives are given up."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self.move()  # what has come meanwhile
        for entry in self._moving:
            entry.pending.fail(ClosedError("recv: the process group was shut down"))
        self._moving = []
        self.communicator.close()

    def _post(
        self, name: str, sends: bool, tensor: torch.Tensor, rank: int | None, tag: int
    ) -> Work:
        if self._closing:
            raise ClosedError(f"{name}: the process group was shut down")
        pending, lanes = Pending(name), lanes_of([tensor])
        self._wanted.append(Wanted(pending, sends, tensor, rank, tag, lanes))
        self.move()
        if not pending.done():
            self._watch()
        return MessageWork(tensor, pending, self, lanes)

    # ---- with the lock -----------------------------------------------------------------------

    def _look(self) -> None:
        """Begin what is wanted, and settle what has ended."""
        while self._wanted:
            self._begin(self._wanted.popleft())
        self._moving = [entry for entry in self._moving if not self._ended(entry)]

    def _wait_for(self, pending: Pending, seconds: float) -> None:
        """Move messages on for at most so long, or until one has ended."""
        self._look()
        for entry in self._moving:
            if entry.pending is pending:
                with suppress(CollectiveError), current(entry.lanes):
                    entry.request.wait(seconds)  # the next look finds out which
                self._look()
                return

    def _begin(self, wanted: Wanted) -> None:
        pending, sends, tensor, rank, tag, lanes = wanted
        comm, peer = self.communicator, ANY_SOURCE if rank is None else rank
        try:
            with current(lanes):
                request = comm.isend(tensor, peer, tag) if sends else comm.irecv(tensor, peer, tag)
        except BaseException as error:
            pending.fail(error)
        else:
            seconds = self._seconds
            end = time.monotonic() + seconds
            self._moving.append(Moving(pending, sends, request, end, seconds, lanes))

    def _ended(self, entry: Moving) -> bool:
        pending, _, request, end, seconds, lanes = entry
        try:
            with current(lanes):
                if request.done():
                    request.wait()
                elif time.monotonic() < end:
                    return False
                else:
                    request.wait(_SOON)  # raises, with what is known of the other rank
        except CollectiveTimeoutError as error:
            pending.fail(_after(seconds, error))
        except BaseException as error:
            pending.fail(error)
        else:
            pending.finish(None if request.status is None else request.status.source)
        return True

    # ---- for whom nobody waits ---------------------------------------------------------------

    def _watch(self) -> None:
        """See that the thread is awake."""
        if self._thread is not None and not self._asleep:
            return
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="collectives moves messages", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        nap, idle = _LONGEST, 0
        while not (self._closing and not self._wanted and not self._sending()):
            time.sleep(nap)
            known = self._moving
            if self._calling.acquire(blocking=False):
                try:
                    if known:
                        self._wait_for(known[0].pending, _SHORT_TURN)
                finally:
                    self._calling.release()
            self.move()  # what was wanted meanwhile
            nap = _SOON if len(self._moving) < len(known) else min(2 * nap, _LONGEST)
            idle = 0 if self._moving else idle + 1
            if idle > _IDLE_LOOKS:
                self._rest()

    def _sending(self) -> bool:
        return any(entry.sends for entry in self._moving)

    def _rest(self) -> None:
        """Sleep until there is a message."""
        with self._changed:
            self._asleep = True
            while not (self._wanted or self._moving or self._closing):
                self._changed.wait()
            self._asleep = False
