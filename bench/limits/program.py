# SPDX-License-Identifier: Apache-2.0
"""The native programs of this folder: built when they are needed, run, their output read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.record import ROOT

READY = "COLL_LIMITS"  # environment variable: a coll_limits that is built already
INTERPRETER = "coll_interpreter"  # lies beside it
FLOORS = "coll_floors"
ASK = "coll_ask"  # answers one question at a time; needs nothing of the library


class ProgramError(Exception):
    """The program could not be built or run; the text says why."""


def program(preset: str = "release") -> Path:
    """Return coll_limits of a CMake preset; all programs are up to date with their sources."""
    ready = os.environ.get(READY)
    if ready:
        return Path(ready)
    return build(preset, "coll_limits", INTERPRETER, FLOORS)


def build(preset: str, *targets: str, folder: str = "limits") -> Path:
    """Bring programs of a CMake preset up to date with their sources; return the first one.

    `folder`: where in bench/ they are.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    cmake = shutil.which("cmake", path=path)
    if cmake is None:
        raise ProgramError("native programs need cmake; run `make setup` and use its environment")
    for arguments in (
        ["--preset", preset, "-DCOLL_BENCH=ON"],
        ["--build", "--preset", preset, "--target", *targets],
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
            raise ProgramError(f"the programs could not be built:\n{done.stdout}{done.stderr}")
    return ROOT / "build" / preset / "bench" / folder / targets[0]


def line_latency(path: Path) -> float:
    """Return the one-way latency of a cache line between two cores, in nanoseconds."""
    return float(_output(path, "line"))


def blocks(path: Path, count: int) -> list[dict[str, Any]]:
    """Measure every row `count` times, interleaved; return one record per row and block."""
    measured: list[dict[str, Any]] = json.loads(_output(path, str(count)))["blocks"]
    return measured


def pairs(path: Path, rounds: int) -> list[dict[str, Any]]:
    """Measure interpreted plans beside loops written by hand; `path` is that of coll_limits."""
    output = _output(path.with_name(INTERPRETER), str(rounds))
    measured: list[dict[str, Any]] = json.loads(output)["pairs"]
    return measured


def floors(path: Path, sizes: Sequence[int], kinds: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Measure a block of each collective of two processes beside loops written by hand.

    Of `kinds` only, or of all that loops were written for.
    """
    output = _output(path.with_name(FLOORS), "1", *map(str, sizes), *kinds)
    measured: list[dict[str, Any]] = json.loads(output)["blocks"]
    return measured


def _output(path: Path, *arguments: str) -> str:
    command = [str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise ProgramError(done.stderr.strip() or f"{path} ended with {done.returncode}")
    return done.stdout
