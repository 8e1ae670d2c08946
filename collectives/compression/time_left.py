# SPDX-License-Identifier: Apache-2.0
"""One time-out for a call that makes several calls inside."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collectives.names import Rest

if TYPE_CHECKING:
    from collectives.caller import Caller

_LEAST_S = 1e-3  # a call needs some, and tells the others, where this rank is late


class TimeLeft:
    """What is left of the time of a call, for each of the calls that it makes."""

    def __init__(self, comm: Caller, timeout: float | None) -> None:
        """Begin now; ``timeout`` in seconds, None: that of the communicator."""
        self._all = comm._handle.timeout if timeout is None else timeout
        self._end = time.monotonic() + self._all

    def __call__(self) -> Rest:
        """Return the seconds that are left; hardly any where none are, so that the call fails."""
        return Rest(max(self._end - time.monotonic(), _LEAST_S), self._all)
