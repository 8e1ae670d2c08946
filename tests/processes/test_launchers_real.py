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

# The first installs the launcher.
pytestmark = [pytest.mark.extras, pytest.mark.processes, pytest.mark.timeout(600)]

SCRIPT = (
    "import sys; {first}\n"
    "import collectives as cl, numpy as np\n"
    "for _ in range(2):\n"
    "  with cl.init(timeout=30) as comm:\n"
    "    total = comm.allreduce(np.full(2, comm.rank + 1.0)).tolist()\n"
    "{last}\n"
    "sys.stdout.write(f'rank {{comm.rank}} of {{comm.size}}: {{total}}\\n')\n"
)


def command(launcher: str, n: int, alone: bool = False) -> tuple[list[str], dict[str, str]]:
    """Return the words before the arguments of Python, and what the environment needs.

    ``alone``: mpi4py cannot be imported.
    """
    if launcher == "torchrun":
        pytest.importorskip("torch")
        return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(n)], {}
    library = LIBRARIES[launcher]
    python = python_of(library)
    words = library.launcher(python, n, True)[:-1]  # our own Python instead
    prefix = Path(python).parents[1]
    packages = next(prefix.glob("lib/python*/site-packages"))
    if alone:
        return [*words, sys.executable], dict(library.environment)
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
     ("openmpi", "without"), ("openmpi", "before"), ("torchrun", "after")],
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


MIXED = (
    "import os, sys\n"
    "odd = os.environ['RANK'] == '1'\n"
    "if odd: import torch.distributed\n"
    "import collectives as cl, numpy as np\n"
    "with cl.init(timeout=30) as comm:\n"
    "  total = comm.allreduce(np.full(2, comm.rank + 1.0)).tolist()\n"
    "assert ('torch' in sys.modules) == odd\n"
    "sys.stdout.write(f'rank {comm.rank}: {total}\\n')\n"
)


@pytest.mark.parametrize("libuv", ["0", "1"])
def test_ranks_meet_in_torchs_store_with_torch_and_without(tmp_path: Path, libuv: str) -> None:
    """They share its keys, and who has not imported torch does not wait for that."""
    program = tmp_path / "program.py"
    program.write_text(MIXED)
    words, env = command("torchrun", 3)
    printed = said([*words, str(program)], env | {"USE_LIBUV": libuv})
    assert sorted(re.findall(r"rank \d: .*?\]", printed)) == [
        f"rank {rank}: [6.0, 6.0]" for rank in range(3)
    ]


GIVEN_BY_MPI = (
    "import collectives as cl, numpy as np\n"
    "from mpi4py import MPI\n"
    "world = MPI.COMM_WORLD\n"
    "half = world.Split(world.rank % 2, -world.rank)\n"
    "for _ in range(2):\n"
    "  with cl.Communicator.from_mpi(half, timeout=30) as comm:\n"
    "    assert (comm.rank, comm.size) == (half.rank, half.size)\n"
    "    total = comm.allreduce(np.full(2, world.rank + 1.0)).tolist()\n"
    "null = world.Split(MPI.UNDEFINED if world.rank == 0 else 0)\n"
    "try:\n"
    "  cl.Communicator.from_mpi(null, timeout=30).close()\n"
    "except cl.InvalidArgumentError as error:\n"
    "  total = str(error)\n"
    "print(f'rank {world.rank}: {total}.', flush=True)\n"
)
GIVEN_BY_TORCH = (
    "import collectives as cl, numpy as np, sys, torch.distributed as d\n"
    "path, rank = sys.argv[1], int(sys.argv[2])\n"
    "store = d.PrefixStore('mine', d.FileStore(path, 3))\n"
    "for _ in range(2):\n"
    "  with cl.Communicator.from_store(store, rank, 3, timeout=30) as comm:\n"
    "    print(comm.rank, comm.allreduce(np.full(2, rank + 1.0)).tolist(), flush=True)\n"
)


@pytest.mark.parametrize("launcher", ["mpich", "openmpi"])
def test_a_communicator_of_mpi4py(launcher: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(GIVEN_BY_MPI)
    words, env = command(launcher, 3)
    printed = said([*words, str(program)], env)
    for line in ("rank 1: [2.0, 2.0].", "rank 2: [4.0, 4.0]."):
        assert line in printed
    assert "rank 0: from_mpi: comm is COMM_NULL" in printed


def test_a_store_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = [sys.executable, "-c", GIVEN_BY_TORCH, str(tmp_path / "store")]
    ranks = [
        subprocess.Popen([*words, str(r)], cwd=ROOT, env=environment(), stdout=subprocess.PIPE)
        for r in range(3)
    ]
    for number, rank in enumerate(ranks):
        printed, _ = rank.communicate(timeout=100)
        assert rank.returncode == 0
        assert printed.decode() == f"{number} [6.0, 6.0]\n" * 2
