# SPDX-License-Identifier: Apache-2.0
"""How fast a link sends: a token bucket (tc-tbf) at one of its ends."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.hosts.tools import call


@dataclass(frozen=True)
class Shape:
    """A rate in Mbit/s, the bucket in bytes, and how long a packet may queue in milliseconds.

    What fits into a full bucket passes at once, so a link is judged by what is far above it.
    """

    mbit: float
    bucket: int = 256 * 1024
    queue_ms: int = 50

    def arguments(self) -> str:
        """Return what tc is told."""
        rate = round(self.mbit * 1e6)
        return f"tbf rate {rate}bit burst {self.bucket}b latency {self.queue_ms}ms"


def put(namespace: str, device: str, shape: Shape | None) -> None:
    """Give a device this shape instead of what it had, also while it sends; None: no limit.

    What is queued is lost: in a smaller bucket a packet that is larger than it would stay for
    ever, and all others behind it.
    """
    lines = []
    if shape_of(namespace, device) is not None:
        lines.append(f"qdisc delete dev {device} root")
    if shape is not None:
        lines.append(f"qdisc add dev {device} root {shape.arguments()}")
    if lines:
        call("tc", "-n", namespace, "-batch", "-", lines=lines)


def shape_of(namespace: str, device: str) -> Shape | None:
    """Return the shape that the kernel reports, None without one.

    It counts the bucket in ticks, so that comes back a few bytes smaller.
    """
    for found in json.loads(call("tc", "-n", namespace, "-j", "qdisc", "show", "dev", device)):
        if found["kind"] == "tbf":
            options = found["options"]
            bucket = str(options["burst"]).partition("b")[0]
            return Shape(options["rate"] * 8 / 1e6, int(bucket), round(options["lat"] / 1000))
    return None
