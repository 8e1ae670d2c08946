# SPDX-License-Identifier: Apache-2.0
"""Hosts made of Linux namespaces, joined by a switch; nothing else of the machine is touched.

A host is a network namespace, a UTS name and a view of /sys and /etc/hosts. Its one link leads to
a bridge, which lives in a network namespace of its own.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from tests.hosts.host import DEVICE, Host
from tests.hosts.namespaces import fresh, names, remove, sweep
from tests.hosts.shape import Shape
from tests.hosts.tools import PATH, call, missing

MOST = 200
CONGESTION = "reno"
PATIENCE = 10.0  # seconds, in which links come up and keepers answer

# The life of a keeper: it names the host, tells it who the others are, chooses reno (kernels
# differ in their default), says what was chosen, and stays until its standard input ends. IPv6
# would send packets of its own, which counters see. The mounts are the keeper's own: `ip netns
# exec` makes a mount namespace, in which /sys shows the devices of the host.
KEEPER = """
set -e
echo "$0" > /proc/sys/kernel/hostname
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 2>/dev/null || true
echo "$1" > /proc/sys/net/ipv4/tcp_congestion_control
if [ -e /etc/hosts ]; then
  mount -t tmpfs -o size=64k none /mnt
  echo "$2" > /mnt/hosts
  mount --bind /mnt/hosts /etc/hosts
  umount /mnt
fi
cat /proc/sys/net/ipv4/tcp_congestion_control
exec cat
"""


class Hosts:
    """``with Hosts(n, mbit=1000) as hosts``: n hosts, ``hosts[0]`` to ``hosts[n - 1]``.

    ``mbit`` shapes each link, both ways; None leaves it as fast as the machine. At the end of the
    ``with``, however it comes, all processes in the hosts are killed and all namespaces removed.
    What a run that was killed has left is removed by the next one.

    Raises:
        ValueError: ``n`` is not in 1 to ``MOST``.
        RuntimeError: who calls is not root, a program is missing, or the machine refuses something;
            the text says which.
    """

    def __init__(self, n: int, mbit: float | None = None) -> None:
        if not 1 <= n <= MOST:
            raise ValueError(f"Hosts({n}): from 1 to {MOST} hosts can be made")
        self._n = n
        self._shape = None if mbit is None else Shape(mbit)
        self._first = ""
        self._keepers: list[subprocess.Popen[str]] = []
        self._hosts: list[Host] = []

    def __enter__(self) -> Self:
        if reason := missing():
            raise RuntimeError(reason)
        sweep()
        self._first = fresh()
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._hosts)

    def __getitem__(self, index: int) -> Host:
        return self._hosts[index]

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts)

    @property
    def first(self) -> str:
        """What the names of all namespaces of these hosts begin with."""
        return self._first

    def close(self) -> None:
        """End what runs in the hosts and remove them; a second call finds nothing to do."""
        # First what we started ourselves: it may be on its way into a host, and not in it yet.
        for program in (*(it for host in self._hosts for it in host.programs), *self._keepers):
            program.kill()
            program.wait()
        for name in names(self._first) if self._first else []:
            remove(name)
        for keeper in self._keepers:
            with contextlib.suppress(OSError):
                keeper.communicate()  # closes the pipes
        self._keepers.clear()
        self._hosts.clear()

    def _make(self) -> None:
        switch = f"{self._first}-switch"
        own = [f"{self._first}-{i}" for i in range(self._n)]
        call("ip", "-batch", "-", lines=[f"netns add {name}" for name in (switch, *own)])
        call("ip", "-n", switch, "-batch", "-", lines=_switch(own))
        for i, name in enumerate(own):
            lines = [
                "link set lo up",
                f"address add {_address(i)}/24 dev {DEVICE}",
                f"link set {DEVICE} up",
            ]
            call("ip", "-n", name, "-batch", "-", lines=lines)
        known = "\n".join(
            ["127.0.0.1 localhost", *(f"{_address(i)} host{i}" for i in range(self._n))]
        )
        self._keepers = [_keeper(name, f"host{i}", known) for i, name in enumerate(own)]
        for i, (name, keeper) in enumerate(zip(own, self._keepers, strict=True)):
            _await_keeper(keeper)
            host = Host(f"host{i}", _address(i), name, switch, f"port{i}", keeper.pid)
            host.put(self._shape, self._shape)
            self._hosts.append(host)
        _await_switch(switch, self._n)


def _address(index: int) -> str:
    return f"10.77.0.{index + 1}"


def _switch(hosts: list[str]) -> list[str]:
    lines = ["link set lo up", "link add bridge type bridge stp_state 0 forward_delay 0"]
    for i, name in enumerate(hosts):
        lines += [
            f"link add port{i} type veth peer name {DEVICE} netns {name}",
            f"link set port{i} master bridge up",
        ]
    return [*lines, "link set bridge up"]


def _keeper(namespace: str, name: str, known: str) -> subprocess.Popen[str]:
    script = ["sh", "-c", KEEPER, name, CONGESTION, known]
    return subprocess.Popen(
        ["ip", "netns", "exec", namespace, "unshare", "--uts", *script],
        env={"PATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _await_keeper(keeper: subprocess.Popen[str]) -> None:
    assert keeper.stdout is not None
    chosen = keeper.stdout.readline().strip()
    if chosen != CONGESTION:
        keeper.kill()
        complaint = keeper.communicate()[1].strip()
        raise RuntimeError(
            f"a host has congestion control '{chosen}', not {CONGESTION}: {complaint}"
        )


def _await_switch(switch: str, ports: int) -> None:
    """Wait until the bridge forwards on all ports: what comes earlier is lost."""
    end = time.monotonic() + PATIENCE
    while call("bridge", "-n", switch, "link", "show").count("state forwarding") < ports:
        if time.monotonic() > end:
            raise RuntimeError(f"the links of {switch} did not come up in {PATIENCE:.0f} s")
        time.sleep(0.002)
