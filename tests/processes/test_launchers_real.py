# SPDX-License-Identifier: Apache-2.0
"""The real mpiexec of MPICH, Intel MPI and Open MPI, and the real torchrun, start our ranks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.peers.libraries import LIBRARIES
from bench.peers.venvs import python_of
from tests.processes.jobs import ROOT, environment

pytestmark = [pytest.mark.extras, pytest.mark.processes]

SCRIPT = (
    "import sys; {first}\n"
    "import collectives as cl, numpy as np\n"
    "for _ in range(2):\n"
    "  with cl.init(timeout=30) as comm:\n"
    "    total = comm.allreduce(np.full(2, comm.rank + 1.0)).tolist()\n"
    "{last}\n"
    "sys.stdout.write(f'rank {{comm.rank}} of {{comm.size}}: {{total}}\\n')\n"
)


def command(launcher: str, n: int) -> tuple[list[str], dict[str, str]]:
    """Return the words before the arguments of Python, and what the environment needs."""
    if launcher == "torchrun":
        pytest.importorskip("torch")
        return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(n)], {}
    library = LIBRARIES[launcher]
    python = python_of(library)
    words = library.launcher(python, n, True)[:-1]  # our own Python instead
    prefix = Path(python).parents[1]
    packages = next(prefix.glob("lib/python*/site-packages"))
    places = {"PYTHONPATH": str(packages), "LD_LIBRARY_PATH": str(prefix / "lib")}
    return [*words, sys.executable], dict(library.environment) | places


def said(words: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(
        words, cwd=ROOT, env=environment(env), capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("launcher", "directory"),
    [("mpich", "pmi1"), ("mpich", "pmi2"), ("impi", "pmi1"), ("openmpi", "mpi"),
     ("torchrun", "torch")],
)  # fmt: skip
def test_ranks_exchange_values(launcher: str, directory: str) -> None:
    words, env = command(launcher, 3)
    if directory == "pmi2":
        env["PMI_VERSION"] = "2"
    printed = said([*words, "-m", "collectives.launchers"], env)
    assert sorted(re.findall(r"rank (\d) of 3, ", printed)) == ["0", "1", "2"]
    assert printed.count(f"directory {directory}, got 0 1 2") == 3


@pytest.mark.parametrize(
    ("launcher", "mpi"),
    [("mpich", "without"), ("mpich", "before"), ("mpich", "after"), ("impi", "after"),
     ("openmpi", "without"), ("torchrun", "after")],
)  # fmt: skip
def test_init_meets(launcher: str, mpi: str, tmp_path: Path) -> None:
    if launcher == "torchrun":
        text = "import torch.distributed as d; d.init_process_group('gloo')"
    else:
        text = "from mpi4py import MPI; assert MPI.COMM_WORLD.allreduce(1) == 3"
    first, last = (text if mpi == when else "" for when in ("before", "after"))
    program = tmp_path / "program.py"
    program.write_text(SCRIPT.format(first=first, last=last))
    words, env = command(launcher, 3)
    printed = said([*words, str(program)], env | {"GLOO_SOCKET_IFNAME": "lo"})
    assert sorted(re.findall(r"rank \d of 3: .*?\]", printed)) == [
        f"rank {rank} of 3: [6.0, 6.0]" for rank in range(3)
    ]
