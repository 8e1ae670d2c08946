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


MARK = "---- the next program ----"


@pytest.mark.processes
def test_programs_print_what_is_shown(tmp_path: Path) -> None:
    library = build(tmp_path / "libnccl.so.2")
    texts = [fence.text for fence in PROGRAMS]  # one after another: to start Python takes longest
    program = f"for text in {texts!r}:\n    exec(text, {{}})\n    print({MARK!r})\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ | {"COLLECTIVES_NCCL": str(library)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    *printed, _ = done.stdout.split(MARK)
    assert [one.split() for one in printed] == [(one.output or "").split() for one in PROGRAMS]


def test_programs_are_found() -> None:
    assert len(PROGRAMS) == 5
