# SPDX-License-Identifier: Apache-2.0
"""The calls of a block of torch's coalescing manager that names a device: one Work for all."""

from __future__ import annotations

from typing import Any

from collectives.pending import Whole
from collectives.torch.work import Work


class Coalescing:
    """What begins between two calls of torch's, which each call goes on by itself meanwhile."""

    _block: list[Work] | None = None

    def _start_coalescing(self, device: Any) -> None:
        """Begin a block."""
        del device
        self._block = []

    def _end_coalescing(self, device: Any) -> Work:
        """End it, and return what has ended when all that began in it has."""
        del device
        begun, self._block = self._block or [], None
        calls = [work.call for work in begun if work.call is not None]
        lanes = [lane for work in begun for lane in work.lanes]
        return Work([], Whole("a block of calls", calls, lambda _: None), lanes)

    def _noted(self, work: Work) -> Work:
        """Let the block, if there is one, wait for a call."""
        if self._block is not None:
            self._block.append(work)
        return work
