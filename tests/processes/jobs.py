# SPDX-License-Identifier: Apache-2.0
"""Start real ranks, and collect what each of them found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COLLRUN = (sys.executable, "-m", "collectives.launch")


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this environment without a job in it, changed as told."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLLECTIVES")}
    return kept | {"COLLECTIVES_CACHE": "off"} | dict(changes or {})


def collrun(
    *arguments: object, timeout: float = 60, env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run collrun to its end."""
    return subprocess.run(
        [*COLLRUN, *map(str, arguments)],
        cwd=ROOT,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=timeout,
        **options,
    )


def emulated_gpu() -> Path:
    """Return the library of the emulated GPU; the newest, where there are several."""
    folders = (ROOT / "build" / preset for preset in ("package", "dev"))
    there = [path for folder in folders if (path := folder / "libemulated_gpu.so").exists()]
    assert there, "make test builds the emulated GPU"
    return max(there, key=lambda path: path.stat().st_mtime)


def found(
    n: int,
    program: str,
    folder: Path,
    *arguments: object,
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
) -> list[Any]:
    """Run ``program`` (module.function below tests.processes) on ``n`` ranks; return results."""
    command = ("-n", n, "-m", "tests.processes.rank", program, folder, *arguments)
    done = collrun(*command, timeout=timeout, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return read(folder, n)


def found_on_gpus(
    n: int, program: str, folder: Path, *arguments: object, **variables: str
) -> list[Any]:
    """Do so with emulated GPUs, and these variables of the environment."""
    env = {"COLLECTIVES_CUDA_LIBRARY": str(emulated_gpu()), **variables}
    return found(n, program, folder, *arguments, env=env)


def read(folder: Path, n: int) -> list[Any]:
    """Return what the ranks have written."""
    return [read_rank(folder, rank) for rank in range(n)]


def read_rank(folder: Path, rank: int) -> Any:
    """Return what one rank has written."""
    return json.loads((folder / f"{rank}.json").read_text())


def processes(name: str, value: str) -> Sequence[int]:
    """Return the processes that have ``name=value`` in their environment."""
    wanted = f"{name}={value}".encode()
    pids = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in variables:
            pids.append(int(path.parent.name))
    return pids


def until(met: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not (value := met()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return value


def start(
    *arguments: object, command: Sequence[str] = COLLRUN, **options: Any
) -> subprocess.Popen[str]:
    """Start collrun; its ranks are found by the variable TEST_JOB."""
    env = environment({"TEST_JOB": f"{os.getpid()}.{time.monotonic_ns()}"})
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    words = [*command, *map(str, arguments)]
    job = subprocess.Popen(words, cwd=ROOT, env=env, **(pipes | options))
    job.args = env["TEST_JOB"]
    return job


def ranks(job: subprocess.Popen[str]) -> list[int]:
    """Return the processes of a job, without collrun."""
    return [pid for pid in processes("TEST_JOB", str(job.args)) if pid != job.pid]
