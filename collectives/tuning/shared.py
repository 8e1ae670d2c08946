# SPDX-License-Identifier: Apache-2.0
"""What rank 0 has, told to all: a table, or why there is none."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from collectives.errors import InvalidArgumentError
from collectives.tuning.table import TunedTable, content_of, table_in

if TYPE_CHECKING:
    from collectives.communicator import Communicator


def from_rank_0(comm: Communicator, words: bytes) -> bytes:
    """Return what rank 0 gives."""
    length = np.array([len(words)])
    comm.broadcast(length, root=0)
    content = np.zeros(int(length[0]), np.uint8)
    if comm.rank == 0:
        content[:] = np.frombuffer(words, np.uint8)
    comm.broadcast(content, root=0)
    return content.tobytes()


def shared_table(comm: Communicator, table: Any, where: str) -> tuple[TunedTable | None, str]:
    """Return the table of rank 0 on all ranks, and why there is none ("": none is wanted)."""
    given, words = _offered(table, where, comm.size) if comm.rank == 0 else (None, b"")
    offered = from_rank_0(comm, words)
    if offered[:1] != b"{":
        return None, offered.decode("utf-8")
    return given or table_in(offered, "the table of rank 0"), ""


def _offered(table: Any, here: str, ranks: int) -> tuple[TunedTable | None, bytes]:
    """Return a table, and as JSON, or why there is none; nothing: none is wanted. It never raises.

    The others are waiting for what rank 0 says.
    """
    if table is None:
        return None, b""
    if isinstance(table, OSError):
        return None, f"no tuned table can be looked for: {table}".encode("utf-8", "replace")
    try:
        if isinstance(table, TunedTable):
            words = json.dumps(table.as_json()).encode()
            given = table_in(words, "the tuned table")
        else:
            name = os.fspath(table) if isinstance(table, str | os.PathLike) else ""
            if not isinstance(name, str) or not name:
                raise InvalidArgumentError(f"{table!r:.60} is no TunedTable and no path of a file")
            words = content_of(name)
            given, words = table_in(words, name), words.strip()
    except Exception as error:
        return None, f"tuned table: {error}".encode("utf-8", "backslashreplace")
    if given.ranks != ranks:
        return None, f"the tuned table is for {given.ranks} ranks, not for {ranks}".encode()
    if given.machine != here:
        where = f"{given.machine!a:.80}"
        return None, f"the tuned table is of another machine ({where}, here {here!r})".encode()
    return given, words
