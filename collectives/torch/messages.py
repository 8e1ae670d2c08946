# SPDX-License-Identifier: Apache-2.0
"""Messages of a torch group: each send and receive goes on by itself, whatever the program does."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import torch

from collectives.errors import ClosedError
from collectives.pending import Pending
from collectives.request import ANY_SOURCE, Request
from collectives.torch.work import Work

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_SOON, _LONGEST = 20e-6, 1e-3  # seconds between two looks at messages under way


class Moving(NamedTuple):
    """A message under way."""

    pending: Pending
    request: Request
    end: float  # by the monotonic clock


class Messages:
    """The thread that moves them, on a communicator that nobody else uses."""

    def __init__(self, communicator: Communicator, seconds: float) -> None:
        """Take over the communicator; the thread begins with the first message.

        `seconds`: so long a message may take.
        """
        self.communicator, self._seconds = communicator, seconds
        self._wanted: deque[tuple[Pending, bool, torch.Tensor, int | None, int]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def send(self, tensor: torch.Tensor, rank: int, tag: int) -> Work:
        """Begin to send."""
        return self._post("send", True, tensor, rank, tag)

    def receive(self, tensor: torch.Tensor, rank: int | None, tag: int) -> Work:
        """Begin to receive; None: from any rank."""
        return self._post("recv", False, tensor, rank, tag)

    def close(self) -> None:
        """End when all messages are done."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self.communicator.close()

    def _post(
        self, name: str, sends: bool, tensor: torch.Tensor, rank: int | None, tag: int
    ) -> Work:
        pending = Pending(name)
        with self._changed:
            if self._closing:
                raise ClosedError(f"{name}: the process group was shut down")
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="collectives moves messages", daemon=True
                )
                self._thread.start()
            self._wanted.append((pending, sends, tensor, rank, tag))
            self._changed.notify()
        return Work([tensor], pending)

    def _run(self) -> None:
        moving: list[Moving] = []
        nap = _SOON
        while True:
            with self._changed:
                while not self._wanted and not moving and not self._closing:
                    self._changed.wait()
                if self._closing and not self._wanted and not moving:
                    return
                new, self._wanted = self._wanted, deque()
            for pending, *what in new:
                self._begin(pending, moving, *what)
            left = [entry for entry in moving if not self._ended(*entry)]
            nap = _SOON if new or len(left) < len(moving) else min(2 * nap, _LONGEST)
            moving = left
            if moving:
                time.sleep(nap)

    def _begin(
        self,
        pending: Pending,
        moving: list[Moving],
        sends: bool,
        tensor: torch.Tensor,
        rank: int | None,
        tag: int,
    ) -> None:
        try:
            comm, peer = self.communicator, ANY_SOURCE if rank is None else rank
            request = comm.isend(tensor, peer, tag) if sends else comm.irecv(tensor, peer, tag)
        except BaseException as error:
            pending.fail(error)
        else:
            moving.append(Moving(pending, request, time.monotonic() + self._seconds))

    def _ended(self, pending: Pending, request: Request, end: float) -> bool:
        try:
            if request.done():
                request.wait()
            elif time.monotonic() < end:
                return False
            else:
                request.wait(_SOON)  # raises, with what is known of the other rank
        except BaseException as error:
            pending.fail(error)
        else:
            pending.finish(None if request.status is None else request.status.source)
        return True
