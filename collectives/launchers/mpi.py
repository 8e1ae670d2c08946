# SPDX-License-Identifier: Apache-2.0
"""Values exchanged by MPI itself, through mpi4py. MPI has no time-outs, so nor has this."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from collectives.errors import BootstrapError, InvalidArgumentError
from collectives.launchers.bundle import packed, unpacked
from collectives.launchers.directory import Deadline


def has_begun() -> bool:
    """Whether this program has begun MPI through mpi4py; it may have ended it."""
    module = sys.modules.get("mpi4py.MPI")
    return module is not None and bool(module.Is_initialized())


def is_running() -> bool:
    """Whether this program has begun MPI through mpi4py, and not ended it."""
    return has_begun() and not sys.modules["mpi4py.MPI"].Is_finalized()


class MpiDirectory:
    """Puts are kept until the fence, which is an allgather on a communicator of MPI."""

    tells_all_at_fences = True

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._new: dict[str, bytes] = {}
        self._all: dict[str, bytes] = {}

    def put(self, key: str, value: bytes, deadline: Deadline) -> None:
        """Leave a value for all ranks, from the next fence on."""
        del deadline
        self._new[key] = bytes(value)

    def get(self, key: str, deadline: Deadline) -> bytes:
        """Return what any rank put before the last fence."""
        del deadline
        if key not in self._all:
            raise BootstrapError(f"no rank put '{key}' before the last fence")
        return self._all[key]

    def fence(self, deadline: Deadline) -> None:
        """Wait until all ranks have called it."""
        del deadline
        own = packed(self._new)  # bytes: mpi4py would pickle anything else
        self._new = {}
        lengths = np.empty(self._comm.Get_size(), np.int64)
        self._comm.Allgather(np.array([len(own)], np.int64), lengths)
        everything = np.empty(lengths.sum(), np.uint8)
        self._comm.Allgatherv(np.frombuffer(own, np.uint8), [everything, lengths.tolist()])
        for part in np.split(everything, np.cumsum(lengths)[:-1]):
            self._all |= unpacked(part.tobytes())

    def close(self) -> None:
        """Nothing is held."""


def open_world(rank: int, size: int) -> MpiDirectory:
    """Return the directory over COMM_WORLD; begins MPI where the program has not.

    Raises InvalidArgumentError where mpi4py sees other ranks than the launcher started.
    """
    try:
        world = import_module("mpi4py.MPI").COMM_WORLD
    except (ImportError, RuntimeError) as error:
        raise BootstrapError(f"mpi4py cannot be used to find the other ranks: {error}") from error
    seen = world.Get_rank(), world.Get_size()
    if seen != (rank, size):
        raise InvalidArgumentError(
            f"the launcher says rank {rank} of {size}, mpi4py rank {seen[0]} of {seen[1]}: "
            "mpi4py belongs to another MPI than the launcher; start with the mpiexec beside it"
        )
    return MpiDirectory(world)
