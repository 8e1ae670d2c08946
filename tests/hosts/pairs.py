# SPDX-License-Identifier: Apache-2.0
"""Connections and datagrams between two hosts, of which the test holds both ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.hosts import Host

PATIENCE = 10.0  # seconds, for what must come
BUFFER = 128 * 1024
QUIET = 0.3  # seconds, for what must not


@contextmanager
def connected(client: Host, server: Host) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give the two ends of a TCP connection, that of the client first.

    The server holds at most 2 ``BUFFER`` bytes that nobody has read.
    """
    with server.socket() as listener, client.socket() as ours:
        listener.settimeout(PATIENCE)
        ours.settimeout(PATIENCE)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        listener.bind((server.address, 0))
        listener.listen()
        ours.connect(listener.getsockname())
        theirs, _ = listener.accept()
        with theirs:
            theirs.settimeout(PATIENCE)
            yield ours, theirs


def exactly(end: socket.socket, count: int) -> bytes:
    """Return the next ``count`` bytes, or fewer where the connection ends before."""
    data = bytearray()
    while len(data) < count and (more := end.recv(count - len(data))):
        data += more
    return bytes(data)


def carry(source: socket.socket, target: socket.socket, data: bytes) -> bytes:
    """Send from one end while the other receives; return what came."""
    sending = threading.Thread(target=source.sendall, args=(data,))
    sending.start()
    try:
        return exactly(target, len(data))
    finally:
        sending.join()


def silent(end: socket.socket) -> bool:
    """Return whether for a while nothing comes: no data, no end, no error."""
    end.settimeout(QUIET)
    try:
        end.recv(1)
    except TimeoutError:
        return True
    finally:
        end.settimeout(PATIENCE)
    return False


def arrives(source: Host, target: Host) -> bool:
    """Return whether one of three datagrams from one host reaches another."""
    with source.socket(socket.SOCK_DGRAM) as ours, target.socket(socket.SOCK_DGRAM) as theirs:
        theirs.bind((target.address, 0))
        theirs.settimeout(QUIET)
        for _ in range(3):
            ours.sendto(b"hello", theirs.getsockname())
        try:
            return theirs.recv(16) == b"hello"
        except TimeoutError:
            return False
