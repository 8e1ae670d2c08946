# SPDX-License-Identifier: Apache-2.0
"""The key-value store behind PMI_FD, spoken to by the native layer.

The socket belongs to one speaker. Where the program has called MPI_Init, through mpi4py, MPI
speaks there, and values are exchanged by MPI (:mod:`collectives.launchers.mpi`).
"""

from __future__ import annotations

import threading
from typing import Any

from collectives._ffi import ffi, lib
from collectives.launchers import mpi
from collectives.launchers.directory import Deadline
from collectives.start import told

_LONGEST = 1 << 16  # bytes of a value, as in the native layer


class PmiDirectory:
    """The launcher's store. ``version`` of its protocol: 1 or 2."""

    def __init__(self, version: int, deadline: Deadline) -> None:
        options = ffi.new("coll_directory_options *")
        options.size = ffi.sizeof("coll_directory_options")
        options.pmi, options.timeout = version, deadline.left()
        if threading.current_thread() is threading.main_thread():
            options.stop = lib.asked_to_stop
        made = ffi.new("coll_directory **")
        told(lib.coll_directory_open(options, made))
        self._native: Any = made[0]

    @property
    def rank(self) -> int:
        """The rank of this process, -1 when closed."""
        return lib.coll_directory_rank(self._native)

    @property
    def size(self) -> int:
        """How many ranks there are, 0 when closed."""
        return lib.coll_directory_ranks(self._native)

    def put(self, key: str, value: bytes, deadline: Deadline) -> None:
        """Leave a value for all ranks."""
        left = deadline.left()
        told(lib.coll_directory_put(self._native, key.encode(), value, len(value), left))

    def get(self, key: str, deadline: Deadline) -> bytes:
        """Return what any rank put before the last fence."""
        room, size = ffi.new("char[]", _LONGEST), ffi.new("size_t *")
        left = deadline.left()
        told(lib.coll_directory_get(self._native, key.encode(), room, _LONGEST, size, left))
        return bytes(ffi.buffer(room, size[0]))

    def fence(self, deadline: Deadline) -> None:
        """Wait until all ranks have called it."""
        told(lib.coll_directory_fence(self._native, deadline.left()))

    def close(self) -> None:
        """Take leave of the launcher, once; where MPI has begun since, it speaks there and does."""
        native, self._native = self._native, ffi.NULL
        if mpi.has_begun():
            return
        lib.coll_directory_close(native)
