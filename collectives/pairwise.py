# SPDX-License-Identifier: Apache-2.0
"""Messages from one rank to another: send and receive, at once or in the background."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectives import arrays
from collectives._ffi import ffi, lib
from collectives.arrays import Array, Operand
from collectives.caller import NOTHING, Caller
from collectives.errors import InvalidArgumentError
from collectives.gpu_messages import lent as resolved
from collectives.handle import Handle
from collectives.names import checked_seconds, integer
from collectives.request import ANY_SOURCE, ANY_TAG, Dropped, Request, Status, empty_message, filled

_MOST_TAG = 2**31 - 1


class Pairwise(Caller):
    """Messages between two ranks, with the rules of MPI.

    Messages of one sender meet the receives of one rank in the order of their sending; receives
    meet messages in the order of their posting. Both ends have the same dtype. Messages and
    collectives do not disturb one another; a message call begins when the collectives in flight
    (``async_op``) that were called before it are done. Arrays of a GPU travel through a copy in
    memory of the host.
    """

    def __init__(self, handle: Handle) -> None:
        """Take over a handle. Users call init() or local()."""
        super().__init__(handle)
        self._dropped = Dropped()

    def send(self, x: Array, to: int, tag: int = 0, *, timeout: float | None = None) -> None:
        """Send ``x`` to rank ``to``; return when ``x`` may be changed again.

        A message of up to 256 KiB (less among more than 32 ranks) does not wait for its receiver,
        as long as no others are on the same way; a longer one does. So two ranks that send to
        each other use :meth:`sendrecv` or :meth:`isend`. A message to oneself never waits. Between
        machines 64 KiB do not wait, but the first message to a rank until that is in a call on
        this communicator.
        ``tag`` is 0 ... 2**31-1.
        """
        seconds = _seconds("send", timeout)
        peer, number = _rank("send: to", to, self.size), _tag("send: tag", tag)
        if (borrowed := arrays.borrow(x)) is not None:
            self._call("send", lib.coll_send, *borrowed, peer, number, seconds)
            return
        given = resolved(x, "send: x")
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
                filled(status, message)
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
        given, target = resolved(x, "sendrecv: x"), _writable(out, "sendrecv: out")
        way = (*given[:3], peer, number, *target[:3], *pattern, message, seconds)
        try:
            self._call("sendrecv", lib.coll_sendrecv, *way)
        finally:
            if status is not None:
                filled(status, message)
        return arrays.delivered(target)

    def probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, *, timeout: float | None = None
    ) -> Status:
        """Wait until there is a message that :meth:`recv` would get, and tell what it is.

        Raises CollectiveTimeoutError after ``timeout`` seconds, which changes nothing; without
        ``timeout`` the communicator's bounds it, and ends the communicator.
        """
        seconds = _seconds("probe", timeout)
        message = empty_message()
        pattern = _pattern("probe", source, tag, self.size)
        self._call("probe", lib.coll_probe, *pattern, message, seconds)
        return filled(Status(), message)

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Status | None:
        """Tell what message :meth:`recv` would get now; None where there is none.

        None, too, while collectives are in flight (``async_op``), and of a rank that has closed.
        """
        message, there = empty_message(), ffi.new("int32_t *")
        pattern = _pattern("iprobe", source, tag, self.size)
        if not self._in_flight:
            self._call("iprobe", lib.coll_iprobe, *pattern, there, message)
        if not there[0]:
            return None
        return filled(Status(), message)

    def isend(self, x: Array, to: int, tag: int = 0) -> Request:
        """Begin to send ``x``, and return; ``x`` is not to be changed until the request is done.

        Wait for it before close(): what has not left then is lost.
        """
        peer, number = _rank("isend: to", to, self.size), _tag("isend: tag", tag)
        given = resolved(x, "isend: x")
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


def _message_for(call: str, status: Status | None) -> Any:
    if status is None:
        return NOTHING
    if not isinstance(status, Status):
        raise InvalidArgumentError(f"{call}: status is {status!r}: pass a collectives.Status()")
    return empty_message()


def _writable(x: Array, what: str) -> Operand:
    target = resolved(x, what)
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
