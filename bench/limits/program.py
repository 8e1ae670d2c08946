# SPDX-License-Identifier: Apache-2.0
"""The native program of this folder: built when it is needed, run, its output read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.record import ROOT

READY = "COLL_LIMITS"  # environment variable: a program that is built already


class ProgramError(Exception):
    """The program could not be built or run; the text says why."""


def program(preset: str = "release") -> Path:
    """Return the program of a CMake preset, up to date with its sources."""
    ready = os.environ.get(READY)
    if ready:
        return Path(ready)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    cmake = shutil.which("cmake", path=path)
    if cmake is None:
        raise ProgramError("the limits need cmake; run `make setup` and use its environment")
    for arguments in (
        ["--preset", preset, "-DCOLL_BENCH=ON"],
        ["--build", "--preset", preset, "--target", "coll_limits"],
    ):
        done = subprocess.run(
            [cmake, *arguments],
            cwd=ROOT,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ProgramError(f"coll_limits could not be built:\n{done.stdout}{done.stderr}")
    return ROOT / "build" / preset / "bench" / "limits" / "coll_limits"


def line_latency(path: Path) -> float:
    """Return the one-way latency of a cache line between two cores, in nanoseconds."""
    return float(_output(path, "line"))


def blocks(path: Path, count: int) -> list[dict[str, Any]]:
    """Measure every row `count` times, interleaved; return one record per row and block."""
    measured: list[dict[str, Any]] = json.loads(_output(path, str(count)))["blocks"]
    return measured


def _output(path: Path, argument: str) -> str:
    command = [str(path), argument]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise ProgramError(done.stderr.strip() or f"{path} ended with {done.returncode}")
    return done.stdout
