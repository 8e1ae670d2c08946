# SPDX-License-Identifier: Apache-2.0
"""What a table is good for: so many ranks, on hosts of such processors, joined in such a way."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_DIGEST = 8  # bytes
_CORES = 1024  # that are told apart


def fingerprint(comm: Communicator) -> str:
    """Return a text that is equal where a table measured here is worth something.

    Every rank must call it, and gets the same. It names the processors, how many cores the ranks of
    each host have between them (pinned or not), how many ranks there are on each host, in their
    order, and by what bytes travel.
    """
    from collectives.launchers.meeting import host
    from collectives.tuning.host_kind import host_fingerprint

    own = b"".join(
        hashlib.sha256(text.encode()).digest()[:_DIGEST] for text in (host_fingerprint(), host())
    )
    words = own + _usable_cores()
    gathered = np.empty(comm.size * len(words), np.uint8)
    comm.allgather(np.frombuffer(words, np.uint8), gathered)
    rows = [bytes(row) for row in gathered.reshape(comm.size, -1)]
    cores: dict[bytes, int] = {}
    for row in rows:
        host_of = row[_DIGEST : 2 * _DIGEST]
        cores[host_of] = cores.get(host_of, 0) | int.from_bytes(row[2 * _DIGEST :], "little")
    kinds = _kinds([row[:_DIGEST] for row in rows], [mask.bit_count() for mask in cores.values()])
    numbers = {host_of: i for i, host_of in enumerate(cores)}
    places = "".join(f"{numbers[row[_DIGEST : 2 * _DIGEST]]}," for row in rows)
    where = _short(places.encode(), 8) if len(cores) > 1 else "one-host"
    return f"{comm.transport}-{comm.size}-{where}-{kinds}"


def one_host(transport: str, ranks: int, cores: int) -> str:
    """Return what :func:`fingerprint` would of so many ranks of this host with so many cores."""
    from collectives.tuning.host_kind import host_fingerprint

    own = hashlib.sha256(host_fingerprint().encode()).digest()[:_DIGEST]
    return f"{transport}-{ranks}-one-host-{_kinds([own] * ranks, [cores])}"


def _kinds(hosts: list[bytes], cores: list[int]) -> str:
    """Name the processors of the ranks' hosts, and how many cores the ranks have on each."""
    return _short(b"".join(hosts) + ",".join(str(count) for count in cores).encode(), 16)


def _usable_cores() -> bytes:
    """Return the cores that this process may use, a bit for each."""
    mask = 0
    for core in os.sched_getaffinity(0):
        mask |= 1 << core % _CORES
    return mask.to_bytes(_CORES // 8, "little")


def _short(words: bytes, digits: int) -> str:
    return hashlib.sha256(words).hexdigest()[:digits]
