# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's NCCL as a candidate for arrays on GPUs: a GPU for each rank, or one that they share."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.gpu.yardsticks import Yardsticks
from collectives import nccl
from collectives.errors import CollectiveError
from collectives.rivals.standing import SEVERAL_ON_ONE, SHARING
from tests.gpu.owners import owner
from tests.gpu.test_processes import PATIENCE_S, settings
from tests.processes.jobs import COLLRUN, ROOT

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(200)]

SIZE = 2


def needed(size: int) -> None:
    """Skip where there is no NVIDIA's NCCL, or one that does not let ranks share the only GPU."""
    gpus = owner("torch").module.cuda.device_count()
    try:
        library = nccl.load()
    except CollectiveError as error:
        pytest.skip(str(error))
    if library.host_arrays:
        pytest.skip("the libnccl of this process is this package's own")
    if gpus < size and library.version < SEVERAL_ON_ONE:
        pytest.skip(f"{gpus} GPUs for {size} ranks, and NCCL {library.version}")


@pytest.mark.parametrize(("name", "size"), [("nccl_chosen", SIZE), ("nccl_mixed", 2 * SIZE)])
def test_it_is_chosen_or_not_and_right(name: str, size: int, yard: Yardsticks) -> None:
    needed(size)
    program = (
        "import os, pathlib, tests.gpu.rank_programs as p; "
        f"p.{name}(int(os.environ['COLLECTIVES_RANK']), {size}, pathlib.Path('.'))"
    )
    done = subprocess.run(
        [*COLLRUN, "-n", str(size), sys.executable, "-c", program],
        cwd=ROOT, env=settings() | {SHARING: "1"}, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
