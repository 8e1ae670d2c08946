# SPDX-License-Identifier: Apache-2.0
"""The tests of tests/gpu, run beside the measurement; a few of them under compute-sanitizer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bench.record import ROOT

# pytest of any version will do; nothing is written into the checkout.
PYTEST = (
    sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "-o",
    "minversion=7", "-o", "filterwarnings=", "tests/gpu",
)  # fmt: skip
SANITIZER = "compute-sanitizer"
FEW = "small_set"  # in the names of tests that are short enough for it
FOUND = 86  # what the sanitizer is to end with


@dataclass(frozen=True)
class Check:
    """What came of a command: its last words, and whether all was well; None: it did not run."""

    name: str
    passed: bool | None
    words: str


def all_of(seconds: float, only: str) -> Check:
    """Run tests/gpu, those whose names have ``only`` in them."""
    return _run("tests/gpu", [*PYTEST, *(["-k", only] if only else [])], seconds)


def sanitized(seconds: float) -> Check:
    """Run a few of them under compute-sanitizer, where that is installed."""
    tool = shutil.which(SANITIZER)
    if tool is None:
        return Check(SANITIZER, None, f"{SANITIZER} is not installed")
    command = [tool, "--tool", "memcheck", "--error-exitcode", str(FOUND), *PYTEST, "-k", FEW]
    found = _run(SANITIZER, command, seconds)
    late = found.passed is False and found.words == _late(seconds)
    return Check(SANITIZER, None, found.words) if late else found  # it makes all kernels anew


def _run(name: str, command: Sequence[str], seconds: float) -> Check:
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Check(name, False, _late(seconds))
    if done.returncode:
        return Check(name, False, f"ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    summary = [line for line in done.stdout.splitlines() if " passed" in line or " skipped" in line]
    return Check(name, True, summary[-1].strip("= ") if summary else "passed")


def _late(seconds: float) -> str:
    return f"not over after {seconds:.0f} s"
