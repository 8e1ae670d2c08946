# SPDX-License-Identifier: Apache-2.0
"""torchrun, the hydras of MPICH and Intel MPI and Open MPI's mpirun start ranks on two hosts.

Where they start their daemons by ssh, a script stands in for it, which enters a host.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.hosts.host import Words
from tests.processes.jobs import ROOT, environment
from tests.processes.test_launchers_real import command

pytestmark = [pytest.mark.extras, pytest.mark.hosts]

PATIENCE = 60.0  # seconds; torch takes a few of them, the others half of one

PROGRAM = (
    "import sys, collectives as cl, numpy as np\n"
    "{first}\n"
    "with {communicator} as comm:\n"
    "    total = comm.allreduce(np.full(2, comm.rank + 1.0)).tolist()\n"
    "    place = comm.topology(measure=False).places[comm.rank]\n"
    "assert comm.transport == 'tcp'\n"
    "sys.stdout.write(f'rank {{comm.rank}} on {{place.host}}: {{total}}\\n')\n"
)
SSH = """#!/bin/sh
# Options, the host, words for its shell, which has neither our folder nor our environment.
while case "$1" in -*) true ;; *) false ;; esac; do shift; done
case "$1" in
  {cases}
  *) echo "ssh: Could not resolve hostname $1" >&2; exit 255 ;;
esac
shift
cd /
exec nsenter --target=$keeper --net --uts --mount -- env -i PATH="$PATH" HOME=/ /bin/sh -c "$*"
"""


@pytest.fixture
def ssh(hosts: Hosts, tmp_path: Path) -> str:
    """Return a stand-in for ssh between the hosts."""
    script = tmp_path / "ssh"
    cases = "\n  ".join(f"{host.name}) keeper={host.keeper} ;;" for host in hosts)
    script.write_text(SSH.format(cases=cases))
    script.chmod(0o755)
    return str(script)


def program(folder: Path, first: str = "", communicator: str = "cl.init(timeout=30)") -> str:
    path = folder / "program.py"
    path.write_text(PROGRAM.format(first=first, communicator=communicator))
    return str(path)


def said(hosts: Hosts, words: Words, env: Mapping[str, str]) -> list[str]:
    """Run a launcher on the first host, and return what ranks said; bytes must pass the link."""
    with hosts[1].counted() as traffic:
        printed = hosts[0].run(words, timeout=PATIENCE, env=environment(env))
    assert traffic.sent_bytes > 1000
    return sorted(line for line in printed.splitlines() if line.startswith("rank "))


def hydra(ssh: str, library: str) -> tuple[list[str], dict[str, str]]:
    words, env = command(library, 3)
    there = ["-launcher", "ssh", "-launcher-exec", ssh, "-hosts", "host0,host1", "-ppn", "1"]
    return [words[0], *there, *words[1:]], env


def mpirun(ssh: str, alone: bool) -> tuple[list[str], dict[str, str]]:
    words, env = command("openmpi", 4, alone=alone)
    there = ["--prtemca", "plm_ssh_agent", ssh, "--host", "host0:2,host1:2"]
    along = [] if alone else ["-x", "PYTHONPATH"]
    return [words[0], *there, *along, *words[1:]], env


@pytest.mark.parametrize("library", ["mpich", "impi"])
@pytest.mark.parametrize("first", ["", "from mpi4py import MPI"], ids=["pmi", "mpi"])
def test_hydra(hosts: Hosts, ssh: str, tmp_path: Path, library: str, first: str) -> None:
    """Values are exchanged by PMI, or by MPI where that was there first."""
    words, env = hydra(ssh, library)
    assert said(hosts, [*words, program(tmp_path, first)], env) == [
        "rank 0 on host0: [6.0, 6.0]",
        "rank 1 on host1: [6.0, 6.0]",
        "rank 2 on host0: [6.0, 6.0]",
    ]


OF_FOUR = [f"rank {rank} on host{rank // 2}: [10.0, 10.0]" for rank in range(4)]


@pytest.mark.parametrize("alone", [True, False], ids=["pmix", "mpi"])
def test_mpirun(hosts: Hosts, ssh: str, tmp_path: Path, alone: bool) -> None:
    words, env = mpirun(ssh, alone)
    assert said(hosts, [*words, program(tmp_path)], env) == OF_FOUR


def test_a_communicator_of_mpi4py(hosts: Hosts, ssh: str, tmp_path: Path) -> None:
    """Each host has a rank of both halves."""
    words, env = mpirun(ssh, alone=False)
    first = "from mpi4py import MPI; half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)"
    path = program(tmp_path, first, "cl.Communicator.from_mpi(half, timeout=30)")
    assert said(hosts, [*words, path], env) == [
        f"rank {rank} on host{rank}: [3.0, 3.0]" for rank in (0, 0, 1, 1)
    ]


@pytest.mark.parametrize("backend", ["static", "c10d"])
def test_torchrun(hosts: Hosts, tmp_path: Path, backend: str) -> None:
    pytest.importorskip("torch")
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
    words += ["--nproc-per-node", "2", "--rdzv-backend", backend, "--rdzv-id", "job"]
    words += ["--rdzv-endpoint", f"{hosts[0].address}:29515"]
    path, env = program(tmp_path), environment({"OMP_NUM_THREADS": "1"})
    agents = [
        host.start(
            [*words, "--node-rank", str(number), path],
            env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for number, host in enumerate([hosts[0], hosts[1]])
    ]  # fmt: skip
    ended = [agent.communicate(timeout=PATIENCE) for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], ended
    lines = [line for printed, _ in ended for line in printed.splitlines()]
    if backend == "static":
        assert sorted(lines) == OF_FOUR
    else:  # who comes first has the lower ranks
        assert sorted(line.partition(": ")[2] for line in lines) == ["[10.0, 10.0]"] * 4
        assert sorted(line.split()[3] for line in lines) == ["host0:", "host0:", "host1:", "host1:"]
