# SPDX-License-Identifier: Apache-2.0
"""How the ranks of a team begin a call at the same moment, whatever the library.

A barrier lets the last to come go first, by up to the latency of a line, and every library has its
own. So the ranks make an appointment: each publishes when it came, and all begin a moment after the
latest of these times, by the clock that the cores share. Where ranks share cores they cannot begin
together; they go when all have come, and yield while they wait.
"""

from __future__ import annotations

import mmap
import os
import time

_SLACK_S = 2e-6  # for the last to come to be seen by the others, and a little
_LINE, _RANK = 64, 128  # bytes: a line for each of two turns
_PATIENCE_S = 60.0
_SPINS = 20_000


class LineUp:
    """One rank's view of the memory that the team shares for this, a file of zeros."""

    def __init__(self, path: str, rank: int, ranks: int, shared_cores: bool) -> None:
        with open(path, "r+b") as file:
            memory = memoryview(mmap.mmap(file.fileno(), size(ranks))).cast("d")
        self._times = memory
        self._shared = shared_cores
        # A rank can be a turn ahead of another, never two: so turns use two times in turn.
        self._mine = [(rank * _RANK + turn * _LINE) // 8 for turn in range(2)]
        self._all = [[(r * _RANK + turn * _LINE) // 8 for r in range(ranks)] for turn in range(2)]
        self._turn = 0
        self._last = 0.0

    def wait(self) -> None:
        """Return when all ranks have come, at the same moment on all."""
        clock, times, last = time.perf_counter, self._times, self._last
        self._turn ^= 1
        times[self._mine[self._turn]] = came = clock()
        for place in self._all[self._turn]:
            spins = 0
            while times[place] <= last:
                spins += 1
                if self._shared or spins > _SPINS:
                    os.sched_yield()
                    if spins > _SPINS and clock() > came + _PATIENCE_S:
                        raise TimeoutError("a rank of the team did not come")
        begin = max([times[place] for place in self._all[self._turn]])
        self._last = begin
        if not self._shared:
            begin += _SLACK_S
            while clock() < begin:
                pass


def size(ranks: int) -> int:
    """Return the bytes of the file for a team."""
    return ranks * _RANK
