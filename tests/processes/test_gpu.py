# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes, with arrays on the emulated GPU: one that they share, or one each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.processes.jobs import collrun, emulated_gpu, read

pytestmark = pytest.mark.processes


def found(n: int, program: str, folder: Path) -> list[Any]:
    command = ("-n", n, "-m", "tests.processes.rank", program, folder)
    done = collrun(*command, env={"COLLECTIVES_CUDA_LIBRARY": str(emulated_gpu())})
    assert done.returncode == 0, done.stdout + done.stderr
    return read(folder, n)


@pytest.mark.parametrize("program", ["gpu.everything", "gpu.each_its_own", "gpu.each_sees_its_own"])
def test_every_collective_of_arrays_on_gpus(program: str, tmp_path: Path) -> None:
    for rank, checks in enumerate(found(3, program, tmp_path)):
        for check, wrong in checks.items():
            assert wrong == [], f"rank {rank}, {check}"


def test_arrays_of_the_host_and_of_gpus_are_not_mixed(tmp_path: Path) -> None:
    for words in found(2, "gpu.differently", tmp_path):
        assert "on GPUs" in words
