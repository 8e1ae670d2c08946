# SPDX-License-Identifier: Apache-2.0
"""Whether a rank ends because of another: what it tells collrun, by a pipe that it got from there.

When a rank fails, the others may end before it does: they are told at once, and it has its modules
to clear away. Who ended first says little, so those that were told say that they were.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress

from collectives.errors import AbortedError, CollectiveError, CollectiveTimeoutError, MismatchError

FAREWELL = "COLLECTIVES_FAREWELL"
_RANK = "COLLECTIVES_RANK"
_SAID = b"1"


class Note:
    """Collrun's end of the pipe to a rank, from its start to its end."""

    def __init__(self) -> None:
        """Open it."""
        self._reading, self.writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    @property
    def variable(self) -> dict[str, str]:
        """What the rank's environment says: the descriptor, and which pipe that is."""
        return {FAREWELL: f"{self.writing}:{os.fstat(self.writing).st_ino}"}

    def handed_over(self) -> None:
        """The rank has its end."""
        os.close(self.writing)

    def take(self) -> bool:
        """Return whether the rank, which has ended, has said that another was the cause."""
        try:
            return bool(os.read(self._reading, 1))
        except BlockingIOError:  # a process that the rank has started holds the other end
            return False

    def close(self) -> None:
        """Close it."""
        os.close(self._reading)


def tell_collrun(error: BaseException | None) -> None:
    """Say that this process ends because of another rank, where that is what the error tells."""
    number, _, inode = os.environ.get(FAREWELL, "").partition(":")
    if not (number.isdecimal() and _of_another(error, os.environ)):
        return
    with suppress(OSError):  # a process that a rank has started has the variable, but no pipe
        there = os.fstat(int(number))
        if stat.S_ISFIFO(there.st_mode) and str(there.st_ino) == inode:
            os.write(int(number), _SAID)


def _of_another(error: BaseException | None, env: Mapping[str, str]) -> bool:
    """Return whether an error, or what it came from, names another rank as its cause."""
    own, seen = env.get(_RANK, ""), set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, CollectiveError) and error.rank is not None:
            # Ranks that differ are all at fault, and who was too late may still be waited for.
            mutual = isinstance(error, MismatchError | CollectiveTimeoutError)
            ours = isinstance(error, AbortedError) and str(error.rank) == own
            return not (mutual or ours)
        error = error.__cause__ or error.__context__
    return False
