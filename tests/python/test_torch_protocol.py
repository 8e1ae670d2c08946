# SPDX-License-Identifier: Apache-2.0
"""The protocol of torch's store, against a made-up server; tests/processes has the real one."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from collectives.errors import BootstrapError
from collectives.launchers.directory import Deadline
from collectives.launchers.torch_protocol import connected

Answer = Callable[[socket.socket], None]


def exactly(peer: socket.socket, count: int) -> bytes:
    return peer.recv(count, socket.MSG_WAITALL)


def pings(peer: socket.socket) -> None:
    """Answer what comes first, as the server does."""
    assert exactly(peer, 5) == b"\x00" + struct.pack("=I", 0x3C85F7CE)
    assert exactly(peer, 1) == b"\x0d"
    peer.sendall(exactly(peer, 4))


@contextmanager
def server(answer: Answer) -> Iterator[int]:
    """Serve one connection; return the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(10)
                answer(peer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(10)
        assert not thread.is_alive()


def text(data: bytes) -> bytes:
    return struct.pack("=Q", len(data)) + data


def test_values_are_set_and_found() -> None:
    asked = b"\x05" + struct.pack("=Q", 1) + text(b"/mine/k")

    def answer(peer: socket.socket) -> None:
        pings(peer)
        put = b"\x01" + text(b"/mine/k") + text(b"a value")
        assert exactly(peer, len(put)) == put
        assert exactly(peer, len(asked)) == asked
        peer.sendall(b"\x00")
        get = b"\x03" + text(b"/mine/k")
        assert exactly(peer, len(get)) == get
        for part in (text(b"a value")[:3], text(b"a value")[3:10], text(b"a value")[10:]):
            peer.sendall(part)
        assert exactly(peer, len(asked)) == asked
        peer.sendall(b"\x01")
        assert exactly(peer, 1) == b""

    with server(answer) as port:
        client = connected("127.0.0.1", port, "mine/", Deadline(10))
        assert client is not None
        client.put("k", b"a value")
        assert client.find("k") == b"a value"
        assert client.find("k") is None
        client.close()


def wrong_nonce(peer: socket.socket) -> None:
    exactly(peer, 10)
    peer.sendall(b"????")


def gone(peer: socket.socket) -> None:
    exactly(peer, 10)


@pytest.mark.parametrize("answer", [wrong_nonce, gone])
def test_a_server_of_another_protocol_is_left_alone(answer: Answer) -> None:
    with server(answer) as port:
        assert connected("127.0.0.1", port, "mine/", Deadline(10)) is None


def silent(peer: socket.socket) -> None:
    exactly(peer, 10)
    assert exactly(peer, 1) == b""  # until the client gives up


def test_a_server_that_says_nothing_is_left_alone() -> None:
    with server(silent) as port:
        assert connected("127.0.0.1", port, "mine/", Deadline(0.05)) is None


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert connected("127.0.0.1", port, "mine/", Deadline(10)) is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"\x07", "has answered"),
        (b"\x00" + struct.pack("=Q", 1 << 40), "a value of 1099511627776 bytes"),
        (b"\x00" + struct.pack("=Q", 9) + b"short", "closed the connection"),
        (b"", "closed the connection"),
    ],
)
def test_answers_without_sense_are_told(said: bytes, words: str) -> None:
    def answer(peer: socket.socket) -> None:
        pings(peer)
        exactly(peer, 1 + 8 + 8 + len("/mine/k"))
        peer.sendall(said)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(100):  # an end with bytes unread would be a reset
            pass

    with server(answer) as port:
        client = connected("127.0.0.1", port, "mine/", Deadline(10))
        assert client is not None
        with pytest.raises(BootstrapError, match=words):
            client.find("k")
        client.close()
