# SPDX-License-Identifier: Apache-2.0
"""Ranks of one process that share a GPU, each a thread that lives as long as the team."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any

import collectives as cl

Work = Callable[[cl.Communicator], Any]
TIMEOUT_S = 20.0  # of a wait, on the GPU too: what hangs shall not take the whole run with it
SWITCH_S = 1e-4  # every call waits for the interpreter lock once per rank


class Team:
    """``with Team(4) as team: team.run(lambda comm: comm.allreduce(arrays[comm.rank]))``."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.comms = cl.local(ranks, timeout=TIMEOUT_S)
        self._threads = ThreadPoolExecutor(ranks)
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> Team:
        sys.setswitchinterval(SWITCH_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.setswitchinterval(self._interval)
        self._threads.shutdown()
        for comm in self.comms:
            comm.close()

    def run(self, work: Work) -> list[Any]:
        """Run on all ranks at once; return what they return, or raise what the first raised."""
        return [future.result() for future in self._all(work)]

    def outcomes(self, work: Work) -> list[BaseException | None]:
        """Run on all ranks at once; return what each raised."""
        return [future.exception() for future in self._all(work)]

    def _all(self, work: Work) -> list[Any]:
        begun = [self._threads.submit(work, comm) for comm in self.comms]
        wait(begun)
        return begun
