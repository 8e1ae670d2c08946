# SPDX-License-Identifier: Apache-2.0
"""Measurements that are kept: JSON in bench/results/, each with the machine it was made on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from collectives.cli.machine import facts

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"


def commit() -> str:
    """Return the checkout's commit, with "+" when files were changed since; "" without git.

    What is kept here, by measurements before, does not count.
    """
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        but = f":!{RESULTS.relative_to(ROOT)}"
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", str(ROOT), but)
        return head + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine() -> dict[str, Any]:
    """Return the facts that belong beside every figure."""
    return {**facts(), "commit": commit()}


def save(path: Path, measured: dict[str, Any]) -> None:
    """Write measurements and the machine to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine(), **measured}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()
