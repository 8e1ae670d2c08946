# SPDX-License-Identifier: Apache-2.0
"""Bytes and packets on a host's link, as differences over a span."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.hosts.tools import call


@dataclass
class Traffic:
    """What a host has sent to and received from its link, headers included.

    The kernel hands large packets to the link whole (up to 64 KiB): their headers count once, so
    the bytes lie less than 1 % above the payload, and packets are fewer than on a wire.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    sent_packets: int = 0
    received_packets: int = 0


def read(namespace: str, device: str) -> Traffic:
    """Return the counters of a device since it was made."""
    (link,) = json.loads(call("ip", "-n", namespace, "-j", "-s", "link", "show", "dev", device))
    sent, received = link["stats64"]["tx"], link["stats64"]["rx"]
    return Traffic(sent["bytes"], received["bytes"], sent["packets"], received["packets"])


@contextmanager
def counted(namespace: str, device: str) -> Iterator[Traffic]:
    """Give counters that are zero inside the ``with`` and hold the difference behind it."""
    before, difference = read(namespace, device), Traffic()
    try:
        yield difference
    finally:
        after = read(namespace, device)
        for name in vars(difference):
            setattr(difference, name, getattr(after, name) - getattr(before, name))
