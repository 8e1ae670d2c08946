# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/nccl.md print what they say, on the stand-in for libnccl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages
from tests.nccl.standin import build

PAGE = Path(__file__).resolve().parents[2] / "docs/nccl.md"
PROGRAMS = [
    fence for fence in pages.fences(PAGE.read_text(encoding="utf-8")) if fence.language == "python"
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("page") / "libnccl.so.2")


@pytest.mark.processes
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_print_what_is_shown(number: int, library: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAMS[number].text],
        env=os.environ | {"COLLECTIVES_NCCL": str(library)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == (PROGRAMS[number].output or "").split()
    assert not done.stderr


def test_programs_are_found() -> None:
    assert len(PROGRAMS) == 5
