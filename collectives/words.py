# SPDX-License-Identifier: Apache-2.0
"""What every rank says, told to all: bytes, of each rank as many as it likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
