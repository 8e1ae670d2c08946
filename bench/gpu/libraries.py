# SPDX-License-Identifier: Apache-2.0
"""The two libraries that a run needs: the kernels, and the yardsticks; built where they are not."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

from bench.record import ROOT

KERNELS = "COLLECTIVES_CUDA_LIBRARY"  # environment variable: a library of kernels that is built
YARDSTICKS = "GPU_YARDSTICKS"  # the same of yardsticks
FOLDER = ROOT / "build" / "cuda"
SOURCES = ROOT / "bench" / "gpu"
TIMEOUT_S = 900.0


class LibraryError(Exception):
    """A library could not be built; the text says why."""


def driver() -> str:
    """Return why no GPU can be used; "" where the driver counts at least one."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"the driver's libcuda.so.1 is not there ({error})"
    outcome, count = cuda.cuInit(0), ctypes.c_int(0)
    if outcome == 0:
        outcome = cuda.cuDeviceGetCount(ctypes.byref(count))
    if outcome != 0:
        return f"the driver cannot begin (CUDA error {outcome})"
    return "" if count.value else "the driver counts none"


def kernels() -> Path:
    """Return the library of kernels, built by scripts/cuda_build.sh if nobody says where it is."""
    ready = os.environ.get(KERNELS)
    if ready:
        return Path(ready)
    _run([str(ROOT / "scripts" / "cuda_build.sh")], "the kernels")
    os.environ[KERNELS] = str(FOLDER / "libcollectives_cuda.so")
    return Path(os.environ[KERNELS])


def yardsticks() -> Path:
    """Return the library of yardsticks, newer than its sources."""
    ready = os.environ.get(YARDSTICKS)
    if ready:
        return Path(ready)
    built = FOLDER / "libyardsticks.so"
    sources = [*SOURCES.glob("*.cu"), *SOURCES.glob("*.h"), *(ROOT / "native/cuda").glob("*.h")]
    if not built.exists() or built.stat().st_mtime < max(p.stat().st_mtime for p in sources):
        _run(command(nvcc(), "sm_90", built), "the yardsticks")
    os.environ[YARDSTICKS] = str(built)
    return built


def nvcc() -> str:
    """Return the CUDA compiler: CUDACXX, the system's, or that which made the kernels."""
    named = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if named:
        return named
    usual, cache = Path("/usr/local/cuda/bin/nvcc"), FOLDER / "CMakeCache.txt"
    if usual.exists():
        return str(usual)
    text = cache.read_text(encoding="utf-8") if cache.exists() else ""
    found = re.search(r"^CMAKE_CUDA_COMPILER:\w+=(.+)$", text, flags=re.MULTILINE)
    if found is None:
        raise LibraryError("there is no nvcc: set CUDACXX, or run scripts/cuda_build.sh once")
    return found[1]


def command(compiler: str, architecture: str, built: Path) -> list[str]:
    """Return how nvcc makes the library of yardsticks."""
    # In a tree of packages of PyPI libraries lie in lib, where nvcc looks in lib64.
    beside = Path(compiler).resolve().parents[1] / "lib"
    built.parent.mkdir(parents=True, exist_ok=True)
    return [
        compiler, "-std=c++20", "-O3", f"-arch={architecture}", "--expt-relaxed-constexpr",
        "--fmad=false", "-Xptxas", "-v", "-Xcompiler", "-fPIC,-fvisibility=hidden,-Wno-attributes",
        "-shared", "-cudart", "static", f"-L{beside}",
        "-I", str(ROOT / "native"), "-I", str(ROOT / "bench"),
        *(str(path) for path in sorted(SOURCES.glob("*.cu"))), "-o", str(built),
    ]  # fmt: skip


def _run(arguments: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            arguments, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LibraryError(f"{what} could not be built: {error}") from None
    if done.returncode:
        raise LibraryError(f"{what} could not be built:\n{done.stdout}{done.stderr}")
