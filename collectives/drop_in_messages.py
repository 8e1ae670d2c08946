# SPDX-License-Identifier: Apache-2.0
"""Messages between two ranks as functions, of the default communicator."""

from __future__ import annotations

from collectives.arrays import Array
from collectives.default import default
from collectives.method_docs import documented_as_method
from collectives.request import ANY_SOURCE, ANY_TAG, Request, Status


@documented_as_method
def send(x: Array, to: int, tag: int = 0, *, timeout: float | None = None) -> None:
    """:meth:`Communicator.send` of the default communicator."""
    default().send(x, to, tag, timeout=timeout)


@documented_as_method
def recv(
    x: Array,
    source: int = ANY_SOURCE,
    tag: int = ANY_TAG,
    *,
    status: Status | None = None,
    timeout: float | None = None,
) -> Array:
    """:meth:`Communicator.recv` of the default communicator."""
    return default().recv(x, source, tag, status=status, timeout=timeout)


@documented_as_method
def sendrecv(
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
    """:meth:`Communicator.sendrecv` of the default communicator."""
    return default().sendrecv(
        x, to, out, source, send_tag, recv_tag, status=status, timeout=timeout
    )


@documented_as_method
def probe(source: int = ANY_SOURCE, tag: int = ANY_TAG, *, timeout: float | None = None) -> Status:
    """:meth:`Communicator.probe` of the default communicator."""
    return default().probe(source, tag, timeout=timeout)


@documented_as_method
def iprobe(source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Status | None:
    """:meth:`Communicator.iprobe` of the default communicator."""
    return default().iprobe(source, tag)


@documented_as_method
def isend(x: Array, to: int, tag: int = 0) -> Request:
    """:meth:`Communicator.isend` of the default communicator."""
    return default().isend(x, to, tag)


@documented_as_method
def irecv(x: Array, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
    """:meth:`Communicator.irecv` of the default communicator."""
    return default().irecv(x, source, tag)
