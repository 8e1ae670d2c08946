# SPDX-License-Identifier: Apache-2.0
"""Messages on their way: what one was, and a send or receive in the background."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collectives import arrays
from collectives._ffi import ffi, lib
from collectives.arrays import NAMES, Array, Operand
from collectives.caller import NOTHING
from collectives.errors import CollectiveError, CollectiveTimeoutError, InvalidArgumentError
from collectives.names import checked_seconds

if TYPE_CHECKING:
    from collectives.pairwise import Pairwise

ANY_SOURCE = -1
"""As ``source``: a message of any rank."""

ANY_TAG = -1
"""As ``tag`` of a receive: a message with any tag."""

_UNWRITTEN = -2  # a source that the native layer never writes
_POLL_S = 0.0005


@dataclass(slots=True)
class Status:
    """What a message was. ``recv(..., status=s)`` fills it, ``probe`` returns one.

    ``source`` and ``tag`` are its sender's, ``count`` is in elements, ``dtype`` a name such as
    "float32".
    """

    source: int = ANY_SOURCE
    tag: int = ANY_TAG
    count: int = 0
    dtype: str = ""


class Request:
    """A send or receive in the background, as :meth:`Communicator.isend` and ``irecv`` return it.

    It moves on in every call on its communicator, and in none else: a program that computes for
    long without a call leaves its messages where they are. Until it is done its array belongs to
    the library. One that is dropped goes on.
    """

    def __init__(self, comm: Pairwise, name: str, number: int, lent: Operand) -> None:
        """Not done yet. The library makes these."""
        self._comm = comm
        self._name = name
        self._number = number
        self._lent: Operand | None = lent
        self._result: Array = None
        self._status: Status | None = None
        self._error: CollectiveError | None = None

    def done(self) -> bool:
        """Whether it has ended, well or not. Never waits.

        While collectives are in flight (``async_op``) it is not known to have.
        """
        if self._lent is None:
            return True
        if self._comm._in_flight:
            return False
        ended, message = ffi.new("int32_t *"), empty_message()
        try:
            self._comm._call("done", lib.coll_test, self._number, ended, message)
        except InvalidArgumentError as error:
            if not ended[0]:
                raise  # of this call: another thread is in one
            self._end(message, error)
        except CollectiveError as error:
            self._end(message, error)
        else:
            if ended[0]:
                self._end(message, None)
        return self._lent is None

    def wait(self, timeout: float | None = None) -> Array:
        """Wait until it is done; return the array of a receive, None of a send.

        Raises what :meth:`Communicator.recv` and ``send`` raise. Raises CollectiveTimeoutError
        when it is not done after ``timeout`` seconds, and goes on; without ``timeout`` the
        communicator's bounds it, and ends the communicator.
        """
        seconds = 0.0 if timeout is None else checked_seconds("wait: timeout", timeout)
        if self._lent is not None:
            self._wait(seconds)
        if self._error is not None:
            raise self._error
        return self._result

    def result(self, timeout: float | None = None) -> Array:
        """Do as :meth:`wait`."""
        return self.wait(timeout)

    @property
    def status(self) -> Status | None:
        """What a receive has got, once it is known to be done; None before, and of a send."""
        return self._status

    def __await__(self) -> Generator[Any, None, Array]:
        """Wait in asyncio: it looks every half millisecond, which also moves messages on.

        Nothing else does while the program makes no call: a thread that slept in a wait instead
        would keep all other calls of this communicator waiting, that of the answer included.
        """
        import asyncio  # only here: it takes as long to load as all of this package

        while not self.done():
            yield from asyncio.sleep(_POLL_S).__await__()
        return self.wait()

    def __repr__(self) -> str:
        """Tell the call and, as far as is known, how it ended."""
        state = "in flight"
        if self._lent is None:
            state = "done" if self._error is None else "failed"
        return f"<Request {self._name}, {state}>"

    def __del__(self) -> None:
        """Leave the array with the communicator, which may still read or write it."""
        if self._lent is not None:
            self._comm._dropped.append(self._number, self._lent)

    def _wait(self, seconds: float) -> None:
        message = empty_message()
        try:
            self._comm._call("wait", lib.coll_wait, self._number, message, seconds)
        except CollectiveTimeoutError as error:
            if seconds:
                raise  # of this call
            self._end(message, error)
        except InvalidArgumentError as error:
            if message.source == _UNWRITTEN:
                raise  # of this call: another thread is in one
            self._end(message, error)
        except CollectiveError as error:
            self._end(message, error)
        else:
            self._end(message, None)

    def _end(self, message: Any, error: CollectiveError | None) -> None:
        lent, self._lent = self._lent, None
        self._error = error
        if message.source == _UNWRITTEN:  # a send, or a communicator that has failed
            return
        self._status = filled(Status(), message)
        if error is None and lent is not None:
            self._result = arrays.delivered(lent)


class Dropped:
    """The arrays of requests that nobody holds any more, until they are done."""

    def __init__(self) -> None:
        self._lent: dict[int, Operand] = {}

    def append(self, number: int, lent: Operand) -> None:
        """Keep an array for the request of this number."""
        self._lent[number] = lent

    def look(self, comm: Pairwise) -> None:
        """Let go of those that are done."""
        for number in list(self._lent):
            ended = ffi.new("int32_t *")
            try:
                comm._call("done", lib.coll_test, number, ended, NOTHING)
            except CollectiveError:
                if not ended[0]:
                    raise  # what has become of a message that nobody asks for is nobody's error
            if ended[0]:
                del self._lent[number]

    def __bool__(self) -> bool:
        return bool(self._lent)


def filled(status: Status, message: Any) -> Status:
    """Return ``status`` with what a message was, where the native layer has written it."""
    if message.source != _UNWRITTEN:
        status.source, status.tag, status.count = message.source, message.tag, message.count
        status.dtype = NAMES.get(message.dtype, "")
    return status


def empty_message() -> Any:
    """Return a message that the native layer has not written."""
    return ffi.new("coll_message *", {"source": _UNWRITTEN})
