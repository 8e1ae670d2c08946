# SPDX-License-Identifier: Apache-2.0
"""What a table is good for: so many ranks, on hosts of such processors, joined in such a way."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_DIGEST = 8  # bytes


def fingerprint(comm: Communicator) -> str:
    """Return a text that is equal where a table measured here is worth something.

    Every rank must call it, and gets the same. It names the processors, how many cores each rank
    may use, how many ranks there are on each host, in their order, and by what bytes travel.
    """
    from collectives.launchers.meeting import host
    from collectives.machine_probe import host_fingerprint

    own = host_fingerprint()
    words = b"".join(hashlib.sha256(text.encode()).digest()[:_DIGEST] for text in (own, host()))
    gathered = np.empty(comm.size * len(words), np.uint8)
    comm.allgather(np.frombuffer(words, np.uint8), gathered)
    rows = [bytes(row) for row in gathered.reshape(comm.size, -1)]
    kinds = hashlib.sha256(b"".join(row[:_DIGEST] for row in rows)).hexdigest()[:16]
    hosts = [row[_DIGEST:] for row in rows]
    numbers = {host: i for i, host in enumerate(dict.fromkeys(hosts))}
    places = "".join(f"{numbers[host]}," for host in hosts) if len(numbers) > 1 else "one host"
    where = hashlib.sha256(places.encode()).hexdigest()[:8] if len(numbers) > 1 else "one-host"
    return f"{comm.transport}-{comm.size}-{where}-{kinds}"
