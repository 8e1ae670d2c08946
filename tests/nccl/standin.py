# SPDX-License-Identifier: Apache-2.0
"""Builds the stand-in for libnccl, and tells what was called in it."""

from __future__ import annotations

import ctypes
import os
import subprocess
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from collectives.nccl import Library
from collectives.nccl.declarations import HOST_ARRAYS, SINCE
from collectives.nccl.versions import Version

HERE = Path(__file__).parent
NEWEST = Version(2, 30, 7)


@lru_cache(maxsize=1)
def _folder() -> TemporaryDirectory[str]:
    """Return where the objects lie, as long as this process lives."""
    return TemporaryDirectory(prefix="standin-")


@lru_cache(maxsize=1)
def _objects() -> list[str]:
    """Compile the sources, once in a process."""
    folder = Path(_folder().name)
    made = []
    for source in sorted(HERE.glob("standin_*.c")):
        made.append(str(folder / f"{source.stem}.o"))
        compiler = [*os.environ.get("CXX", "g++").split(), "-x", "c", "-std=c11", "-O1", "-fPIC"]
        strict = ["-Wall", "-Wextra", "-Wno-missing-prototypes", "-Werror"]
        subprocess.run([*compiler, *strict, "-c", str(source), "-o", made[-1]], check=True)
    return made


def build(path: Path, version: Version = NEWEST, host_arrays: bool = True) -> Path:
    """Write a libnccl with the functions that a version has; it tells that of the newest."""
    names = [name for name, since in SINCE.items() if since <= version]
    names += ["standin_*", *([HOST_ARRAYS] if host_arrays else [])]
    exported = path.with_suffix(".map")
    exported.write_text("{ global: " + " ".join(f"{name};" for name in names) + " local: *; };\n")
    linker = [*os.environ.get("CXX", "g++").split(), "-shared", f"-Wl,--version-script={exported}"]
    soname = "-Wl,-soname,libnccl.so.2"
    subprocess.run([*linker, soname, "-o", str(path), *_objects()], check=True)
    return path


class Standin:
    """A stand-in that is open in this process: its library, and what was called."""

    def __init__(
        self,
        path: Path,
        version: Version = NEWEST,
        host_arrays: bool = True,
        told: Version | None = None,
    ) -> None:
        """Build one with the functions of a version, that tells that it is of one."""
        self._c = ctypes.CDLL(str(build(path, version, host_arrays)))
        self._c.standin_log.restype = ctypes.c_char_p
        self._c.standin_version((told or version).code)
        self.library = Library(str(path))

    def log(self) -> list[str]:
        """What was called since the last look, a line each."""
        lines: list[str] = self._c.standin_log().decode().splitlines()
        self._c.standin_clear()
        return lines

    def fail(self, function: str, code: int, said: str = "") -> None:
        """Let a function return an error, until the next look at the log."""
        self._c.standin_fail(function.encode(), code, said.encode())

    def progress(self, polls: int) -> None:
        """Let communicators that do not block be in progress for so many polls."""
        self._c.standin_progress(polls)

    def async_error(self, handle: int, code: int) -> None:
        """Let a communicator tell an error of its own."""
        self._c.standin_async_error(ctypes.c_void_p(handle), code)

    @property
    def released(self) -> int:
        """How many communicators were given back."""
        return int(self._c.standin_released())
