# SPDX-License-Identifier: Apache-2.0
"""Processes that share a GPU: through memory of the host, by torch's interface and NCCL's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.gpu.libraries import KERNELS
from bench.gpu.yardsticks import Yardsticks
from tests.gpu.owners import owner
from tests.processes.jobs import COLLRUN, ROOT, environment

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(200)]

PATIENCE_S = 90.0
NCCL = ("-m", "collectives.run", "--nccl")


def settings() -> dict[str, str]:
    """Return the environment of a process, which takes the kernels that this one has."""
    return environment({KERNELS: os.environ[KERNELS]} if KERNELS in os.environ else {})


def run(program: str, folder: Path, size: int, before: Sequence[str] = ()) -> None:
    """Run a program of tests/gpu/rank_programs.py in so many processes, to its end."""
    command = [sys.executable, *before, "-m", "tests.gpu.rank_programs", program]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(folder / "file")],
            cwd=ROOT, env=settings(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(size)
    ]  # fmt: skip
    said = []
    try:
        said = [rank.communicate(timeout=PATIENCE_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * size, "\n".join(said)


@pytest.mark.parametrize("size", [2, 4])
def test_arrays_of_processes_that_share_a_gpu(size: int, yard: Yardsticks, tmp_path: Path) -> None:
    owner("cupy")
    owner("torch")
    program = (
        "import os, pathlib, tests.gpu.rank_programs as p; "
        f"p.shared(int(os.environ['COLLECTIVES_RANK']), {size}, pathlib.Path('.'))"
    )
    done = subprocess.run(
        [*COLLRUN, "-n", str(size), sys.executable, "-c", program],
        cwd=ROOT, env=settings(), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_backend_of_cupyx(yard: Yardsticks, tmp_path: Path) -> None:
    owner("cupy")
    run("cupyx_backend", tmp_path, 2)


@pytest.mark.parametrize("program", ["torch_backend", "torch_backend_ddp"])
def test_a_backend_of_torch(program: str, yard: Yardsticks, tmp_path: Path) -> None:
    owner("torch")
    run(program, tmp_path, 2)


@pytest.mark.parametrize("program", ["torch_nccl", "torch_ddp", "cupy_nccl", "cupy_backend"])
def test_callers_of_nccl_run_on_our_library(program: str, yard: Yardsticks, tmp_path: Path) -> None:
    owner("torch" if program.startswith("torch") else "cupy")
    run(program, tmp_path, 2, NCCL)
