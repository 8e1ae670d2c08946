# SPDX-License-Identifier: Apache-2.0
"""Messages from one rank to another: send and receive, at once or in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from collectives import arrays
from collectives._ffi import ffi, lib
from collectives.arrays import NAMES, Array, Operand, operand
from collectives.caller import NOTHING, Caller
from collectives.errors import CollectiveError, CollectiveTimeoutError, InvalidArgumentError
from collectives.handle import Handle
from collectives.names import checked_seconds, integer

ANY_SOURCE = -1
"""As ``source``: a message of any rank."""

ANY_TAG = -1
"""As ``tag`` of a receive: a message with any tag."""

_MOST_TAG = 2**31 - 1
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

    def _fill(self, message: Any) -> None:
        if message.source != _UNWRITTEN:
            self.source, self.tag, self.count = message.source, message.tag, message.count
            self.dtype = NAMES.get(message.dtype, "")


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
        ended, message = ffi.new("int32_t *"), _empty_message()
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
        """Wait in asyncio: it looks every half millisecond, which also moves messages on."""
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
        message = _empty_message()
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
        self._status = Status()
        self._status._fill(message)
        if error is None and lent is not None:
            self._result = arrays.delivered(lent)


class _Dropped:
    """The arrays of requests that nobody holds any more, until they are done."""

    def __init__(self) -> None:
        self._lent: dict[int, Operand] = {}

    def append(self, number: int, lent: Operand) -> None:
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


class Pairwise(Caller):
    """Messages between two ranks, with the rules of MPI.

    Messages of one sender meet the receives of one rank in the order of their sending; receives
    meet messages in the order of their posting. Both ends have the same dtype. Messages and
    collectives do not disturb one another; a message call begins when the collectives in flight
    (``async_op``) that were called before it are done.
    """

    def __init__(self, handle: Handle) -> None:
        """Take over a handle. Users call init() or local()."""
        super().__init__(handle)
        self._dropped = _Dropped()

    def send(self, x: Array, to: int, tag: int = 0, *, timeout: float | None = None) -> None:
        """Send ``x`` to rank ``to``; return when ``x`` may be changed again.

        A message of up to 256 KiB (less among more than 32 ranks) does not wait for its receiver,
        as long as no others are on the same way; a longer one does. So two ranks that send to
        each other use :meth:`sendrecv` or :meth:`isend`. A message to oneself never waits.
        ``tag`` is 0 ... 2**31-1.
        """
        seconds = _seconds("send", timeout)
        peer, number = _rank("send: to", to, self.size), _tag("send: tag", tag)
        if (borrowed := arrays.borrow(x)) is not None:
            self._call("send", lib.coll_send, *borrowed, peer, number, seconds)
            return
        given = operand(x, "send: x")
        self._call("send", lib.coll_send, *given[:3], peer, number, seconds)

    def recv(
        self,
        x: Array,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        *,
        status: Status | None = None,
        timeout: float | None = None,
    ) -> Array:
        """Receive a message into ``x``, which is written in C order, and return ``x``.

        A message that is shorter than ``x`` fills its beginning; ``status`` tells how many
        elements came, and from whom. Where the length is not known before, :meth:`probe` tells.

        Raises InvalidArgumentError for a message that is longer than ``x``: nothing is written,
        the message is lost, and the communicator works on. Raises MismatchError, on all ranks,
        for one of another dtype. Messages that came before the one that is asked for are kept in
        this rank's memory until they are received.
        """
        seconds = _seconds("recv", timeout)
        pattern = _pattern("recv", source, tag, self.size)
        if status is None and (borrowed := arrays.borrow(x)) is not None:
            self._call("recv", lib.coll_recv, *borrowed, *pattern, NOTHING, seconds)
            return _written(x)
        message = _message_for("recv", status)
        target = _writable(x, "recv: x")
        try:
            self._call("recv", lib.coll_recv, *target[:3], *pattern, message, seconds)
        finally:
            if status is not None:
                status._fill(message)
        return arrays.delivered(target)

    def sendrecv(
        self,
        x: Array,
        to: int,
        out: Array,
        source: int = ANY_SOURCE,
        send_tag: int = 0,
        recv_tag: int = ANY_TAG,
        *,
        status: Status | None = None,
        timeout: float | None = None,
    ) -> Array:
        """Send ``x`` to rank ``to`` and receive from ``source`` into ``out``, at once.

        Ranks that exchange, in pairs or around a ring, all call it, and none waits for another
        in vain. ``x`` and ``out`` share no memory. Returns ``out``, as :meth:`recv` does.
        """
        seconds = _seconds("sendrecv", timeout)
        peer = _rank("sendrecv: to", to, self.size)
        number = _tag("sendrecv: send_tag", send_tag)
        pattern = _pattern("sendrecv", source, recv_tag, self.size, "recv_tag")
        plain = arrays.borrow(x), arrays.borrow(out)
        if status is None and plain[0] is not None and plain[1] is not None:
            way = (*plain[0], peer, number, *plain[1], *pattern, NOTHING, seconds)
            self._call("sendrecv", lib.coll_sendrecv, *way)
            return _written(out)
        message = _message_for("sendrecv", status)
        given, target = operand(x, "sendrecv: x"), _writable(out, "sendrecv: out")
        way = (*given[:3], peer, number, *target[:3], *pattern, message, seconds)
        try:
            self._call("sendrecv", lib.coll_sendrecv, *way)
        finally:
            if status is not None:
                status._fill(message)
        return arrays.delivered(target)

    def probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, *, timeout: float | None = None
    ) -> Status:
        """Wait until there is a message that :meth:`recv` would get, and tell what it is.

        Raises CollectiveTimeoutError after ``timeout`` seconds, which changes nothing; without
        ``timeout`` the communicator's bounds it, and ends the communicator.
        """
        seconds = _seconds("probe", timeout)
        message = _empty_message()
        pattern = _pattern("probe", source, tag, self.size)
        self._call("probe", lib.coll_probe, *pattern, message, seconds)
        status = Status()
        status._fill(message)
        return status

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Status | None:
        """Tell what message :meth:`recv` would get now; None where there is none.

        None, too, while collectives are in flight (``async_op``), and of a rank that has closed.
        """
        message, there = _empty_message(), ffi.new("int32_t *")
        pattern = _pattern("iprobe", source, tag, self.size)
        if not self._in_flight:
            self._call("iprobe", lib.coll_iprobe, *pattern, there, message)
        if not there[0]:
            return None
        status = Status()
        status._fill(message)
        return status

    def isend(self, x: Array, to: int, tag: int = 0) -> Request:
        """Begin to send ``x``, and return; ``x`` is not to be changed until the request is done.

        Wait for it before close(): what has not left then is lost.
        """
        peer, number = _rank("isend: to", to, self.size), _tag("isend: tag", tag)
        given = operand(x, "isend: x")
        return self._post("isend", lib.coll_isend, given, peer, number)

    def irecv(self, x: Array, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Begin to receive into ``x``, and return; ``x`` is the library's until it is done."""
        pattern = _pattern("irecv", source, tag, self.size)
        return self._post("irecv", lib.coll_irecv, _writable(x, "irecv: x"), *pattern)

    @property
    def _in_flight(self) -> bool:
        """Whether the communicator's own thread is in a call."""
        return self._worker is not None and self._worker.busy

    def _post(self, name: str, start: Any, lent: Operand, peer: int, tag: int) -> Request:
        if self._dropped:
            self._dropped.look(self)
        number = ffi.new("coll_request *")
        self._call(name, start, *lent[:3], peer, tag, number)
        return Request(self, name, number[0], lent)


def _empty_message() -> Any:
    return ffi.new("coll_message *", {"source": _UNWRITTEN})


def _message_for(call: str, status: Status | None) -> Any:
    if status is None:
        return NOTHING
    if not isinstance(status, Status):
        raise InvalidArgumentError(f"{call}: status is {status!r}: pass a collectives.Status()")
    return _empty_message()


def _writable(x: Array, what: str) -> Operand:
    target = operand(x, what)
    if not target.writable:
        raise InvalidArgumentError(f"{what} is read-only: pass an array that can be written")
    return target


def _written(borrowed: Array) -> Array:
    if type(borrowed) is not np.ndarray:
        arrays.written(borrowed)
    return borrowed


def _seconds(call: str, timeout: float | None) -> float:
    return 0.0 if timeout is None else checked_seconds(f"{call}: timeout", timeout)


def _rank(what: str, rank: int, size: int) -> int:
    number = integer(rank)
    if number is None or not 0 <= number < size:
        raise InvalidArgumentError(f"{what} is {rank!r}: give a rank from 0 to {size - 1}")
    return number


def _tag(what: str, tag: int) -> int:
    number = integer(tag)
    if number is None or not 0 <= number <= _MOST_TAG:
        raise InvalidArgumentError(f"{what} is {tag!r}: give a number from 0 to {_MOST_TAG}")
    return number


def _pattern(call: str, source: int, tag: int, size: int, word: str = "tag") -> tuple[int, int]:
    """Return what a receive is for; both may be any."""
    rank, number = integer(source), integer(tag)
    if rank is None or (rank != ANY_SOURCE and not 0 <= rank < size):
        raise InvalidArgumentError(
            f"{call}: source is {source!r}: give a rank from 0 to {size - 1}, or ANY_SOURCE"
        )
    if number is None or (number != ANY_TAG and not 0 <= number <= _MOST_TAG):
        raise InvalidArgumentError(
            f"{call}: {word} is {tag!r}: give a number from 0 to {_MOST_TAG}, or ANY_TAG"
        )
    return rank, number
