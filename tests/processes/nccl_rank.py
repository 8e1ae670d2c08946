# SPDX-License-Identifier: Apache-2.0
"""What ranks do through ctypes alone, as inference servers call NCCL: run by test_nccl_library.py.

Started as ``python -m tests.processes.nccl_rank PROGRAM RANK RANKS FOLDER``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

import numpy as np

from collectives.preloading import nccl_library

FLOAT32, INT64 = 7, 4
SUM = 0
SUCCESS, INVALID_USAGE, REMOTE_ERROR = 0, 5, 6


class UniqueId(ctypes.Structure):
    """What ranks share before they can share anything else; passed by value."""

    _fields_ = (("internal", ctypes.c_byte * 128),)


FUNCTIONS = {
    "ncclGetVersion": (ctypes.POINTER(c_int),),
    "ncclGetUniqueId": (ctypes.POINTER(UniqueId),),
    "ncclCommInitRank": (ctypes.POINTER(c_void_p), c_int, UniqueId, c_int),
    "ncclAllReduce": (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclReduceScatter": (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclAllGather": (c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_void_p),
    "ncclBroadcast": (c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclSend": (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclRecv": (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
    "ncclCommAbort": (c_void_p,),
    "ncclCommDestroy": (c_void_p,),
}


class Library:
    """The functions of a libnccl.so.2, each of which returns a result."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        for name, arguments in FUNCTIONS.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = arguments, c_int
        self.library.ncclGetErrorString.restype = c_char_p
        self.library.ncclGetLastError.restype = c_char_p
        self.library.ncclGetLastError.argtypes = (c_void_p,)

    def call(self, name: str, *arguments: object) -> None:
        result = getattr(self.library, name)(*arguments)
        assert result == SUCCESS, f"{name}: {self.sentence(result)}"

    def sentence(self, result: int) -> str:
        text: bytes = self.library.ncclGetErrorString(result)
        last: bytes = self.library.ncclGetLastError(None)
        return f"{text.decode()}: {last.decode()}"


class Rank:
    """A communicator, and its calls on arrays."""

    def __init__(self, rank: int, ranks: int, folder: Path) -> None:
        self.rank, self.ranks, self.folder = rank, ranks, folder
        self.nccl = Library(nccl_library())
        unique = self._id()
        self.comm = c_void_p()
        self.nccl.call("ncclCommInitRank", ctypes.byref(self.comm), ranks, unique, rank)

    def _id(self) -> UniqueId:
        path, unique = self.folder / "id", UniqueId()
        if self.rank == 0:
            self.nccl.call("ncclGetUniqueId", ctypes.byref(unique))
            path.with_suffix(".new").write_bytes(bytes(unique.internal))
            path.with_suffix(".new").rename(path)
            return unique
        end = time.monotonic() + 20
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.002)
        return UniqueId.from_buffer_copy(path.read_bytes())

    def sum(self, x: np.ndarray) -> int:
        count, at = c_size_t(x.size), c_void_p(x.ctypes.data)
        result: int = self.nccl.library.ncclAllReduce(
            at, at, count, FLOAT32, SUM, self.comm, c_void_p(0)
        )
        return result


def address(x: np.ndarray) -> c_void_p:
    """Return where the data lie."""
    return c_void_p(x.ctypes.data)


def collectives(it: Rank) -> None:
    """All that an inference server calls."""
    version = c_int()
    it.nccl.call("ncclGetVersion", ctypes.byref(version))
    assert version.value == 23007
    x = np.full(1000, it.rank + 1, "float32")
    assert it.sum(x) == SUCCESS
    assert (x == it.ranks * (it.ranks + 1) / 2).all()
    parts = np.arange(2 * it.ranks, dtype="float32")
    own, everywhere = np.empty(2, "float32"), np.empty(2 * it.ranks, "float32")
    end = (it.comm, c_void_p(0))
    it.nccl.call("ncclReduceScatter", address(parts), address(own), 2, FLOAT32, SUM, *end)
    assert (own == parts[2 * it.rank : 2 * it.rank + 2] * it.ranks).all()
    it.nccl.call("ncclAllGather", address(own), address(everywhere), 2, FLOAT32, *end)
    assert (everywhere == parts * it.ranks).all()
    it.nccl.call("ncclBroadcast", address(own), address(own), 2, FLOAT32, 1, *end)
    assert (own == parts[2:4] * it.ranks).all()
    ring(it)
    it.nccl.call("ncclCommDestroy", it.comm)


def ring(it: Rank) -> None:
    """Everybody sends to the next, in one group."""
    out, got = np.full(3, it.rank), np.empty(3, "int64")
    end = (it.comm, c_void_p(0))
    it.nccl.call("ncclGroupStart")
    after, before = (it.rank + 1) % it.ranks, (it.rank - 1) % it.ranks
    it.nccl.call("ncclSend", address(out), 3, INT64, after, *end)
    it.nccl.call("ncclRecv", address(got), 3, INT64, before, *end)
    it.nccl.call("ncclGroupEnd")
    assert (got == before).all()


def death(it: Rank) -> None:
    """Rank 1 is killed in the middle; the others hear of it at once."""
    x = np.ones(5, "float32")
    assert it.sum(x) == SUCCESS
    if it.rank == 1:
        os.abort()
    begin = time.monotonic()
    result = it.sum(x)
    assert time.monotonic() - begin < 5
    assert result == REMOTE_ERROR
    assert "rank 1" in it.nccl.sentence(result)
    it.nccl.call("ncclCommAbort", it.comm)


def mismatch(it: Rank) -> None:
    """Counts differ."""
    result = it.sum(np.ones(5 + it.rank, "float32"))
    assert result == INVALID_USAGE
    assert "5 float32" in it.nccl.sentence(result)
    it.nccl.call("ncclCommDestroy", it.comm)


PROGRAMS: dict[str, Callable[[Rank], None]] = {
    "collectives": collectives,
    "death": death,
    "mismatch": mismatch,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](Rank(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
