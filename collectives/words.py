# SPDX-License-Identifier: Apache-2.0
"""What every rank says, told to all: bytes, of each rank as many as it likes; is it the same?"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from collectives.arrays import operand
from collectives.errors import InvalidArgumentError
from collectives.names import AUTOMATIC

if TYPE_CHECKING:
    from collectives.communicator import Communicator


def gathered(comm: Communicator, words: bytes, root: int | None = None) -> list[bytes]:
    """Return what every rank says, by rank; with a root, only there."""
    lengths = comm.allgather(np.array([len(words)])).tolist()
    own = np.frombuffer(words, np.uint8)
    if root is None:
        joined = comm.allgatherv(own, lengths)
    else:
        joined = comm.gatherv(own, lengths, root=root)
    ends = np.cumsum(lengths).tolist() if joined is not None else []
    return [joined[end - n : end].tobytes() for end, n in zip(ends, lengths, strict=False)]


def check_equal(comm: Communicator, call: str, words: str) -> None:
    """Raise InvalidArgumentError on all ranks where they do not all give a call the same."""
    own = np.frombuffer(hashlib.sha256(words.encode()).digest()[:8], np.uint8)
    all_of_them = np.empty(comm.size * len(own), np.uint8)
    # In its name, for a rank that makes another call instead.
    both = operand(own, call), operand(all_of_them, call)
    comm._run(call, None, "allgather", *both, AUTOMATIC, 0, 0, None, None, f"{call}()")
    rows = all_of_them.reshape(comm.size, -1)
    others = [rank for rank in range(comm.size) if (rows[rank] != rows[0]).any()]
    if others:
        raise InvalidArgumentError(
            f"{call}: the arguments of rank {others[0]} are not those of rank 0: all ranks must "
            f"give the same (here {words:.200})"
        )
