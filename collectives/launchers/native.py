# SPDX-License-Identifier: Apache-2.0
"""A key-value store that the native layer speaks to: a launcher's, or the one that rank 0 keeps."""

from __future__ import annotations

import threading
from typing import Any

from collectives._ffi import ffi, lib
from collectives.launchers.directory import Deadline
from collectives.stopping import told

_LONGEST = 1 << 16  # bytes of a value, as in the native layer


class NativeDirectory:
    """A store of the native layer. ``options`` is a coll_directory_options without a time-out."""

    tells_all_at_fences = True  # that of rank 0 does

    def __init__(self, options: Any, deadline: Deadline) -> None:
        options.size = ffi.sizeof("coll_directory_options")
        options.timeout = deadline.left()
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
        """Let go of it, once."""
        native, self._native = self._native, ffi.NULL
        lib.coll_directory_close(native)
