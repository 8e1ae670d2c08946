# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.hosts.test_trusted` do."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import collectives as cl
from tests import sweep

_LISTENS = "0A"


def goes(comm: cl.Communicator) -> dict[str, Any]:
    """Return how data goes, here and in groups, what was wrong, and where this process listens."""
    wrong = {kind: sweep.once(comm, kind, 70_001) for kind in (*sweep.FOLDS, *sweep.MOVES)}
    alone = comm.split(comm.rank)
    assert alone is not None
    with comm.dup() as group, alone:
        group.barrier()
        ways = [comm.transport, group.transport]
        found = {"ways": ways, "alone": alone.transport, "listens": listens()}
    return found | {"wrong": list(filter(None, wrong.values()))}


def listens() -> list[str]:
    """Return the addresses of IPv4 at which this process listens."""
    own = {os.readlink(file) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()}
    found = set()
    for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = words = line.split()
        if state == _LISTENS and f"socket:[{words[9]}]" in own:
            found.add(socket.inet_ntoa(bytes.fromhex(local.partition(":")[0])[::-1]))
    return sorted(found)
