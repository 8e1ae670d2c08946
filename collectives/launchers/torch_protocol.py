# SPDX-License-Identifier: Apache-2.0
"""What torch's TCPStore says over its socket, without torch, whose import takes a second or more.

The protocol is nobody's promise, so a server must answer a ping first: its number stands last in
the list of queries, and so the others are where we take them to be. Else torch itself is asked.
"""

from __future__ import annotations

import secrets
import socket
import struct

from collectives.errors import BootstrapError
from collectives.launchers.directory import Deadline

_VALIDATE, _SET, _GET, _CHECK, _PING = b"\x00", b"\x01", b"\x03", b"\x05", b"\x0d"
_MAGIC = 0x3C85F7CE
_READY, _NOT_READY = b"\x00", b"\x01"
_PATIENCE = 5.0  # seconds, in which a server answers the ping
_LONGEST = 1 << 24  # bytes of a value


class StoreClient:
    """One connection to a TCPStore."""

    def __init__(self, connection: socket.socket, prefix: str) -> None:
        # Torch has a prefix of its own: other ranks may ask by torch.
        self._connection, self._prefix = connection, f"/{prefix}"

    def knows_us(self) -> bool:
        """Whether the server answers a ping with its number."""
        nonce = secrets.token_bytes(4)
        self._connection.sendall(_VALIDATE + struct.pack("=I", _MAGIC) + _PING + nonce)
        return self._received(4) == nonce

    def put(self, key: str, value: bytes) -> None:
        """Leave a value."""
        self._ask(_SET + self._named(key) + _with_length(value), 0)

    def find(self, key: str) -> bytes | None:
        """Return a value, None where there is none yet."""
        there = self._ask(_CHECK + struct.pack("=Q", 1) + self._named(key), 1)
        if there == _NOT_READY:
            return None
        if there != _READY:
            raise BootstrapError(f"torch's store has answered {there!r} in the place of 0 or 1")
        (length,) = struct.unpack("=Q", self._ask(_GET + self._named(key), 8))
        if length > _LONGEST:
            raise BootstrapError(f"torch's store has a value of {length} bytes, of {_LONGEST}")
        return self._ask(b"", length)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _named(self, key: str) -> bytes:
        return _with_length((self._prefix + key).encode())

    def _ask(self, query: bytes, answer: int) -> bytes:
        try:
            self._connection.sendall(query)
            return self._received(answer)
        except OSError as error:
            raise BootstrapError(f"torch's store has failed: {error}") from error

    def _received(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            more = self._connection.recv(count - len(got))
            if not more:
                raise ConnectionResetError("it has closed the connection")
            got += more
        return got


def connected(host: str, port: int, prefix: str, deadline: Deadline) -> StoreClient | None:
    """Return a client of the store there; None where it does not answer, or says something else."""
    try:
        connection = socket.create_connection((host, port), deadline.at_most(_PATIENCE).left())
    except OSError:
        return None
    client = StoreClient(connection, prefix)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if client.knows_us():
            connection.settimeout(deadline.left())
            return client
    except OSError:
        pass
    client.close()
    return None


def _with_length(data: bytes) -> bytes:
    return struct.pack("=Q", len(data)) + data
