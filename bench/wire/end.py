# SPDX-License-Identifier: Apache-2.0
"""One end of a duplex exchange over TCP: ``end.py listen|connect ADDRESS PORT BYTES BLOCKS``.

It sends and receives BLOCKS blocks, both ways at once, and prints the time in seconds at which
each has come. The end that listens on port 0 prints its port first. Standard library only: it
starts in a bare host.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections.abc import Iterator

PIECE = 256 * 1024  # bytes handed to the kernel at once
PATIENCE = 60.0  # seconds without a byte


def opened(role: str, address: str, port: int) -> socket.socket:
    """Return the connection, as the end that waits or the one that comes."""
    if role == "connect":
        return socket.create_connection((address, port), timeout=PATIENCE)
    with socket.create_server((address, port)) as listener:
        listener.settimeout(PATIENCE)
        print(listener.getsockname()[1], flush=True)
        return listener.accept()[0]


def exchange(link: socket.socket, block: int, blocks: int) -> Iterator[float]:
    """Send and receive blocks without a pause; give the time at which each has come."""
    out, space = memoryview(bytes(PIECE)), memoryview(bytearray(PIECE))
    to_send, received = block * blocks, 0
    poll = select.poll()
    poll.register(link)
    while to_send or received < block * blocks:
        # Asked for room while there is nothing to send, poll would return at once for ever.
        poll.modify(link, select.POLLIN | (select.POLLOUT if to_send else 0))
        ready = poll.poll(PATIENCE * 1000)
        if not ready:
            raise TimeoutError(f"the other end was silent for {PATIENCE:.0f} s")
        if ready[0][1] & select.POLLIN:  # first, so that the other end never waits for us
            count = link.recv_into(space, min(PIECE, block - received % block))
            if count == 0:
                raise ConnectionError(f"the other end left after {received} bytes")
            received += count
            if received % block == 0:
                yield time.monotonic()
        if to_send and ready[0][1] & select.POLLOUT:
            to_send -= link.send(out[: min(PIECE, to_send)])


def main() -> None:
    """Exchange as the arguments say."""
    role, address, *numbers = sys.argv[1:]
    port, block, blocks = map(int, numbers)
    with opened(role, address, port) as link:
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for moment in exchange(link, block, blocks):
            print(moment, flush=True)


if __name__ == "__main__":
    main()
