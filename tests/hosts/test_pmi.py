# SPDX-License-Identifier: Apache-2.0
"""PMI-1 and PMI-2 from a strict server, as mpiexec's and srun's, to ranks on several hosts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.processes.jobs import ROOT, environment
from tests.processes.pmi_server import Server

pytestmark = pytest.mark.hosts

PLACES = (0, 1, 1, 2)  # the hosts of the ranks
PROGRAM = """
import os, sys
import collectives as cl, numpy as np
from collectives.launchers.__main__ import main

assert main() == 0
for _ in range(2):
    with cl.init(timeout=20) as comm:
        mine = np.arange(100_000) + comm.rank
        total = comm.allreduce(mine)
        hosts = [place.host for place in comm.topology(measure=False).places]
    assert np.array_equal(total, comm.size * np.arange(100_000) + 6)
    sys.stdout.write(f"{comm.rank} {comm.transport} {' '.join(hosts)}\\n")
"""
FAILS = """
import collectives as cl, sys
try:
    cl.init(timeout=20)
except cl.CollectiveError as error:
    sys.stdout.write(f"{type(error).__name__}: {error}\\n")
"""
VERSIONS = {"mpiexec": 1, "srun": 2}
OF_SLURM = {
    "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "3",
    "SLURM_STEP_NUM_TASKS": str(len(PLACES)), "PMI_JOBID": "7.0",
}  # fmt: skip


def told(launcher: str, rank: int) -> dict[str, str]:
    """Return what a launcher tells a rank besides PMI's own variables."""
    if launcher == "mpiexec":
        return {}
    before = PLACES[:rank].count(PLACES[rank])
    return OF_SLURM | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(before)}


def ranks_of(hosts: Hosts, server: Server, launcher: str, program: str, **odd: str) -> list[str]:
    """Start the ranks, ``odd`` in the environment of rank 1; return what each has printed."""
    started = []
    for rank, place in enumerate(PLACES):
        own = server.environment(rank) | told(launcher, rank) | (odd if rank == 1 else {})
        process = hosts[place].start(
            [sys.executable, "-c", program],
            env=environment(own),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            inherited=[server.descriptor(rank)],
        )
        server.handed_over(rank)
        started.append(process)
    return [process.communicate(timeout=60)[0] for process in started]


@pytest.mark.parametrize("launcher", VERSIONS)
def test_ranks_exchange_values_and_meet(hosts: Hosts, launcher: str) -> None:
    """Twice, on three hosts, of which one has two ranks."""
    version = VERSIONS[launcher]
    with Server(len(PLACES)) as server, hosts[2].counted() as traffic:
        said = ranks_of(hosts, server, launcher, PROGRAM)
        for rank, text in enumerate(said):
            assert f", launcher {launcher} (" in text, text
            assert f", directory pmi{version}, got 0 1 2 3\n" in text, text
            assert text.count(f"{rank} tcp host0 host1 host1 host2\n") == 2, text
        assert server.versions == {version}
        assert sorted(server.finalized) == [0, 1, 2, 3]
        assert server.failures == []
    assert traffic.sent_bytes > 2 * 100_000 * 8 / len(PLACES)


@pytest.mark.parametrize("launcher", VERSIONS)
def test_a_secret_file_that_only_one_has_is_told_to_all(
    hosts: Hosts, launcher: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("5a" * 32)
    secret.chmod(0o600)
    with Server(len(PLACES)) as server:
        said = ranks_of(hosts, server, launcher, FAILS, COLLECTIVES_SECRET_FILE=str(secret))
        assert server.failures == []
    for text in said:
        assert text.startswith("InvalidArgumentError: "), said
        assert "COLLECTIVES_SECRET_FILE" in text, said
