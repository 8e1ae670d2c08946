# SPDX-License-Identifier: Apache-2.0
"""This package's ``libnccl.so.2``, for programs that load NCCL by that name."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from collectives import _ffi
from collectives.errors import UnsupportedError

SONAME = "libnccl.so.2"
_kept: list[ctypes.CDLL] = []  # a library that nothing refers to may be unloaded


def nccl_library() -> Path:
    """Return where ``libnccl.so.2`` of this package lies, to be opened by path or LD_PRELOAD."""
    path = Path(_ffi.native.__file__).resolve().parent / "nccl_library" / SONAME
    if not path.is_file():
        raise UnsupportedError(
            f"{path} is not there: reinstall the package, or, in a checkout, run `make setup`"
        )
    return path


def loaded_libraries() -> list[str]:
    """Return the paths of all libraries of NCCL's name that this process has loaded."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if SONAME in line}
    return sorted(path for path in paths if Path(path).name == SONAME)


def preload_nccl() -> Path:
    """Load this package's ``libnccl.so.2``, which then takes the place of NCCL's in this process.

    The loader gives a library once per name, so torch, CuPy and what else asks for
    ``libnccl.so.2`` afterwards get this one: call it before they are imported. LD_LIBRARY_PATH
    does not have that effect for torch, whose libraries name a folder of their own first.

    Returns:
        The path of the library.

    Raises:
        UnsupportedError: another ``libnccl.so.2`` is loaded already, or the package has none.
    """
    path = nccl_library()
    others = [it for it in loaded_libraries() if not os.path.samefile(it, path)]
    if others:
        raise UnsupportedError(
            f"{others[0]} is loaded already, so it stays NCCL for this process: call "
            "collectives.preload_nccl() before torch, CuPy or another user of NCCL is imported, "
            "or start the program by python -m collectives.run --nccl"
        )
    _kept.append(ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_GLOBAL))
    return path
