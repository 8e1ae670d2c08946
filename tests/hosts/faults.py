# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between hosts; each fault lasts as long as its ``with``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.hosts.host import Host
from tests.hosts.shape import Shape
from tests.hosts.tools import call

# A full bucket of the usual size would hide two seconds of a link of 1 Mbit/s.
SLOW_BUCKET = 8 * 1024
INGRESS = "ffff:"


@contextmanager
def cut(host: Host) -> Iterator[None]:
    """Pull the host's cable: nothing passes either way, and nobody is told.

    The end in the switch goes down, so the host loses its carrier but keeps address and routes:
    its connections fall silent, as its peers' do, and go on when the cable is back.
    """
    call("ip", "-n", host.switch, "link", "set", host.port, "down")
    try:
        yield
    finally:
        call("ip", "-n", host.switch, "link", "set", host.port, "up")


@contextmanager
def one_way_drop(source: Host, target: Host) -> Iterator[None]:
    """Lose all IPv4 packets from one host to another; the way back stays whole.

    What enters the switch is sent to its loopback, where packets for another machine end: not
    every kernel has tc's own action to drop. One fault of this kind at a time for a source.
    """
    device = ("dev", source.port)
    tc = ("tc", "-n", source.switch)
    match = ("u32", "match", "ip", "dst", f"{target.address}/32")
    action = ("action", "mirred", "egress", "redirect", "dev", "lo")
    call(*tc, "qdisc", "add", *device, "ingress")
    try:
        call(*tc, "filter", "add", *device, "parent", INGRESS, "protocol", "ip", *match, *action)
        yield
    finally:
        call(*tc, "qdisc", "delete", *device, "ingress")


def reset(host: Host, peer: Host) -> int:
    """Reset the TCP connections between two hosts; return how many.

    The kernel of ``host`` ends them: a caller there gets ECONNABORTED, and a reset goes to
    ``peer``, where it gets ECONNRESET.

    Raises:
        RuntimeError: there is none, or the kernel lacks INET_DIAG_DESTROY.
    """
    options = ("-K", "-H", "-t", "-n", "state", "established", "dst", peer.address)
    found = call("ip", "netns", "exec", host.namespace, "ss", *options).splitlines()
    if not found:
        raise RuntimeError(
            f"no connection between {host.name} and {peer.name} was reset: there is none, or the "
            "kernel was built without INET_DIAG_DESTROY."
        )
    return len(found)


@contextmanager
def slow(host: Host, mbit: float = 1.0) -> Iterator[None]:
    """Slow the host's link down, both ways, while bytes flow; behind it, it is as before."""
    before = host.shapes()
    shape = Shape(mbit, SLOW_BUCKET)
    host.put(shape, shape)
    try:
        yield
    finally:
        host.put(*before)
