# SPDX-License-Identifier: Apache-2.0
"""A team with one rank on each host; every process of a library starts inside its host."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.peers.libraries import OURS, TeamName
from bench.peers.teams import Launcher, Team
from bench.record import ROOT
from tests.hosts import Host
from tests.hosts.host import DEVICE

PEERS = ("gloo", "mpich")

# What mpiexec takes for ssh: OPTIONS HOST COMMAND. It enters the host and does it there.
_ENTER = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
case "$1" in
{cases}
  *) echo "no host is called $1" >&2; exit 1 ;;
esac
shift
exec nsenter --target="$keeper" --net --uts --mount -- sh -c "$*"
"""


def teams(peers: Sequence[str], variant: str) -> list[TeamName]:
    """Return ours and the peers, each called in the way that is fastest."""
    ways = {"gloo": "torch", "mpich": "single"}
    return [TeamName(OURS, variant), *(TeamName(peer, ways[peer]) for peer in peers)]


@dataclass
class HostTeam(Team):
    """The ranks of one library, one on each of `hosts`, over their links and nothing else."""

    hosts: Sequence[Host] = ()

    def _launched(
        self, python: Path, arguments: Sequence[str], environment: dict[str, str], log: IO[bytes]
    ) -> list[Launcher]:
        command = [str(python), *arguments, "--free"]
        if self.name.library == "mpich":
            words = [*self._mpiexec(python), *command]
            # Else it would find that the hosts share memory.
            only = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": DEVICE}
            return [_started(self.hosts[0], words, environment | only, log)]
        return [
            _started(host, command, environment | self._place(rank), log)
            for rank, host in enumerate(self.hosts)
        ]

    def _kill(self, launcher: Launcher) -> None:
        """End a program; those that a launcher has started go with their host at the latest."""
        launcher.kill()

    def _place(self, rank: int) -> dict[str, str]:
        """Return what tells a rank who it is, and where it meets the others."""
        meeting = self._stem.with_suffix(".meeting")
        meeting.mkdir(mode=0o700, exist_ok=True)
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(self.ranks),
            "COLLECTIVES_RENDEZVOUS": str(meeting),
            "COLLECTIVES_JOB": f"bench-hosts-{os.getpid()}",
            "GLOO_SOCKET_IFNAME": DEVICE,
        }

    def _mpiexec(self, python: Path) -> list[str]:
        return mpiexec_over(self.hosts, 1, python, self._stem.with_suffix(".enter"))


def mpiexec_over(hosts: Sequence[Host], each: int, python: Path, enter: Path) -> list[str]:
    """Return what starts `each` ranks on every host with the MPICH of `python`.

    `enter`: where the script is put by which it comes to a host.
    """
    enter.write_text(entering(hosts), encoding="utf-8")
    enter.chmod(0o700)
    return [
        *(str(python.with_name("mpiexec")), "-launcher", "ssh", "-launcher-exec", str(enter)),
        *("-hosts", ",".join(host.name for host in hosts)),
        *("-ppn", str(each), "-n", str(each * len(hosts))),
    ]


def entering(hosts: Sequence[Host]) -> str:
    """Return a script that does a command in the host of that name."""
    cases = "\n".join(f"  {host.name}) keeper={host.keeper} ;;" for host in hosts)
    return _ENTER.format(cases=cases)


def _started(
    host: Host, command: Sequence[str], environment: dict[str, str], log: IO[bytes]
) -> Launcher:
    return host.start(
        command,
        env=environment,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=log.fileno(),
        stderr=log.fileno(),
    )
