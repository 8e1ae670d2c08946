# SPDX-License-Identifier: Apache-2.0
"""NCCL's functions and constants by their own names, as cffi calls them.

::

    from collectives.nccl import raw

    comm = raw.ffi.new("uintptr_t *")
    raw.check(raw.ncclCommInitRank(comm, 1, uid, 0), "ncclCommInitRank")

Addresses, communicators, streams, windows and handles are integers. What a function writes through
a pointer is made by ``ffi.new``; structs (ncclConfig_t, ncclSimInfo_t, ncclCollConfig_t and others)
are declared. A function returns its result, which nothing looks at but :func:`check`. The library
is that of ``nccl.load()``; a function that it does not have raises UnsupportedError when it is
asked for. All of nccl.h 2.32 is here but the device API, ncclSetEncryption and what prints.
"""

from __future__ import annotations

from typing import Any

from collectives.nccl.constants import ALL, SUCCESS
from collectives.nccl.declarations import SINCE, ffi
from collectives.nccl.library import load

__all__ = ["check", "ffi"]


def check(code: int, function: str, comm: int = 0) -> None:
    """Raise the NcclError of a result that is not ncclSuccess, with NCCL's last message."""
    if code != SUCCESS:
        raise load().error(function, code, comm)


def __getattr__(name: str) -> Any:
    if name in ALL:
        return ALL[name]
    if name in SINCE:
        return load().function(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *ALL, *SINCE})
