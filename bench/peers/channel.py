# SPDX-License-Identifier: Apache-2.0
"""Messages between the driver and a rank: JSON and bytes over a Unix socket.

A rank that waits for one sleeps in the kernel, so that it does not disturb the team that is
measured. Rank programs import this file: nothing but the standard library.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_HEAD = struct.Struct("<II")

Message = dict[str, Any]


class Channel:
    """One end of a connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def fileno(self) -> int:
        """Return the socket's descriptor, for a selector."""
        return self._socket.fileno()

    def timeout(self, seconds: float | None) -> None:
        """Bound the waiting of each later call; TimeoutError when it is over."""
        self._socket.settimeout(seconds)

    def send(self, message: Message, payload: bytes = b"") -> None:
        """Send one message."""
        text = json.dumps(message).encode()
        self._socket.sendall(_HEAD.pack(len(text), len(payload)) + text + payload)

    def receive(self) -> tuple[Message, bytes] | None:
        """Wait for a message; None when the other side has gone."""
        head = self._exactly(_HEAD.size)
        if head is None:
            return None
        length, extra = _HEAD.unpack(head)
        text, payload = self._exactly(length), self._exactly(extra)
        if text is None or payload is None:
            return None
        message: Message = json.loads(text)
        return message, payload

    def close(self) -> None:
        """Let the other side know that this one has gone."""
        self._socket.close()

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except ConnectionResetError:
                return None
            if not part:
                return None
            data += part
        return bytes(data)


def connect(path: str) -> Channel:
    """Connect to the driver, which listens at `path`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return Channel(connection)
