# SPDX-License-Identifier: Apache-2.0
"""Who a host is, as a process in it reads it; native/topology/host.h reads the same."""

from __future__ import annotations

from dataclasses import dataclass

from tests.hosts.host import Host

READ = "cat /proc/sys/kernel/random/boot_id && stat -L -c %i /proc/self/ns/net && uname -n"


@dataclass(frozen=True)
class Identity:
    """The boot of the kernel, the inode of the network namespace, the host's name."""

    boot_id: str
    network: int
    name: str


def identity(host: Host) -> Identity:
    """Start a process in the host and return what it reads."""
    boot_id, network, name = host.run(["sh", "-c", READ]).splitlines()
    return Identity(boot_id, int(network), name)
