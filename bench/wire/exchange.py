# SPDX-License-Identifier: Apache-2.0
"""A raw duplex exchange between two hosts, timed where the bytes arrive."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
from pathlib import Path

from bench.wire.judge import Way
from tests.hosts import Host

END = Path(__file__).with_name("end.py")


def started(host: Host, role: str, other: Host, port: int, *sizes: int) -> subprocess.Popen[str]:
    """Start one end of the exchange in a host."""
    words = [role, other.address, str(port), *map(str, sizes)]
    return host.start([sys.executable, "-I", "-S", END, *words], stdout=subprocess.PIPE)


def seconds(end: subprocess.Popen[str]) -> float:
    """Return the seconds of the median block behind the first, once all have come to this end."""
    printed, _ = end.communicate()
    if end.returncode != 0:
        raise RuntimeError(f"an end of the exchange failed with {end.returncode}: see above")
    moments = [float(line) for line in printed.split()]
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(moments))


def exchange(here: Host, there: Host, block: int, blocks: int) -> list[Way]:
    """Exchange one block that drains the buckets and ``blocks`` that are measured."""
    sizes = (block, blocks + 1)
    with here.counted() as traffic:
        listening = started(there, "listen", there, 0, *sizes)
        assert listening.stdout is not None
        port = int(listening.stdout.readline())
        connecting = started(here, "connect", there, port, *sizes)
        to_here, to_there = seconds(connecting), seconds(listening)
    payload = block * (blocks + 1)
    return [
        Way(here.name, there.name, payload, traffic.sent_bytes, block, to_there),
        Way(there.name, here.name, payload, traffic.received_bytes, block, to_here),
    ]
