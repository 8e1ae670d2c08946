# SPDX-License-Identifier: Apache-2.0
"""Ports at which a test's ranks meet."""

from __future__ import annotations

import random
import socket

# Below those that systems give to sockets that ask for any: before rank 0 listens, a connection of
# another test would take one of those now and then.
_FIRST, _LAST = 20000, 32000


def free_port(address: str = "127.0.0.1") -> int:
    """Return a port at which nobody listens."""
    for port in random.sample(range(_FIRST, _LAST), 100):
        with socket.socket() as trial:
            try:
                trial.bind((address, port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no port of {_FIRST} to {_LAST} is free")
