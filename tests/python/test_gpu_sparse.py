# SPDX-License-Identifier: Apache-2.0
"""Sparse arrays and TopK on a GPU, which is emulated by threads: from Python to results."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.processes.jobs import ROOT, emulated_gpu


@pytest.mark.parametrize(
    "names",
    [
        "top_k top_k_mistakes a_call_that_fails_leaves_what_is_kept",
        "vectors nothing matrices mistakes differing",
    ],
)
def test_sparse_on_the_emulated_gpu(names: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu_sparse_program", *names.split()],
        cwd=ROOT,
        env={**os.environ, "COLLECTIVES_CUDA_LIBRARY": str(emulated_gpu())},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
