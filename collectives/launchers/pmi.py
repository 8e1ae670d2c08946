# SPDX-License-Identifier: Apache-2.0
"""The key-value store behind PMI_FD, spoken to by the native layer.

The socket belongs to one speaker. Where the program has called MPI_Init, through mpi4py, MPI
speaks there, and values are exchanged by MPI (:mod:`collectives.launchers.mpi`).
"""

from __future__ import annotations

from collectives._ffi import ffi
from collectives.launchers import mpi
from collectives.launchers.directory import Deadline
from collectives.launchers.native import NativeDirectory


class PmiDirectory(NativeDirectory):
    """The launcher's store. ``version`` of its protocol: 1 or 2."""

    tells_all_at_fences = False

    def __init__(self, version: int, deadline: Deadline) -> None:
        options = ffi.new("coll_directory_options *")
        options.pmi = version
        super().__init__(options, deadline)

    def close(self) -> None:
        """Take leave of the launcher, once; where MPI has begun since, it speaks there and does."""
        if mpi.has_begun():
            self._native = ffi.NULL
        else:
            super().close()
