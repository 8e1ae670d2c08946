# SPDX-License-Identifier: Apache-2.0
"""What docs/torch.md shows runs, under torchrun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages

pytestmark = pytest.mark.extras

PAGE = Path(__file__).parents[2] / "docs" / "torch.md"
TORCHRUN = Path(sys.executable).with_name("torchrun")


def torchrun(path: Path, program: str = "") -> str:
    """Run a program on two ranks, which is written to `path` before; return what it prints."""
    if program:
        path.write_text(program, encoding="utf-8")
    command = [str(TORCHRUN), "--standalone", "--nproc-per-node", "2", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_program_of_the_page(tmp_path: Path) -> None:
    fences = pages.fences(PAGE.read_text(encoding="utf-8"))
    program = next(fence.text for fence in fences if fence.name == "digits_of_torch.py")
    assert "loss" in torchrun(tmp_path / "a.py", program)


def test_the_line_of_the_page(tmp_path: Path) -> None:
    line = pages.fences(PAGE.read_text(encoding="utf-8"))[0].text
    end = "print(dist.get_backend())\ndist.destroy_process_group()\n"
    assert torchrun(tmp_path / "a.py", line + end).count("collectives") == 2  # in whatever lines
