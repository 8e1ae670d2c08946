# SPDX-License-Identifier: Apache-2.0
"""Collectives of arrays of a GPU, which is emulated by threads: from Python to results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import collectives as cl
from tests.processes.jobs import emulated_gpu

ROOT = Path(__file__).resolve().parents[2]


def run(module: str, names: list[str], library: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"tests.{module}", *names],
        cwd=ROOT,
        env={**os.environ, "COLLECTIVES_CUDA_LIBRARY": str(library)},
        capture_output=True,
        text=True,
        timeout=100,
    )


CALLS = ["devices", "allreduce", "others", "groups", "mistakes", "differing", "alone"]
BREADTH = [
    "parts", "blocks", "exscan", "reproducible", "persistent", "graphs", "streams",
    "empty", "frameworks", "structures", "accumulate", "messages",
]  # fmt: skip
DLPACK = ["dlpack_of_ours", "dlpack"]


@pytest.mark.parametrize(
    ("module", "names"),
    [("gpu_program", CALLS), ("gpu_breadth_program", BREADTH), ("gpu_dlpack_program", DLPACK)],
)
def test_arrays_of_the_emulated_gpu(module: str, names: list[str]) -> None:
    done = run(module, names, emulated_gpu())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == names


def test_without_the_library_there_is_no_device_and_a_reason() -> None:
    program = "import collectives as cl; d = cl.devices(); print(len(d), d.why)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "COLLECTIVES_CUDA_LIBRARY": "/nowhere/lib.so"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("0 GPUs need the library of kernels, and it cannot be opened (")


class Foreign:
    """Shows memory that no GPU has."""

    def __init__(self) -> None:
        self.__cuda_array_interface__ = {
            "shape": (4,),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
        }


def test_an_array_of_a_gpu_that_is_not_there_is_refused_with_the_reason() -> None:
    comm = cl.local(1)[0]
    with comm, pytest.raises(cl.UnsupportedError, match="x is an array of a GPU: "):
        comm.allreduce(Foreign())
