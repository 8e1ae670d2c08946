# SPDX-License-Identifier: Apache-2.0
"""Whether two processes have come as one rank to a store of torch.

Each rank counts its meetings in the store, so the second of two processes comes to the next
meeting, where nobody else is, and the first may wait for a rank that thinks itself another. Who
finds the meeting before unfinished by its own rank says so there. All who still wait there look at
that, and the process of that rank answers: so the second one knows, too. Of a process that was
killed nobody hears an answer, and who takes its place is no second one. A store in which a rank
was found twice is of no use any more, as its ranks count different meetings: who comes later is
told so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from collectives.errors import BootstrapError, CollectiveError, CollectiveTimeoutError
from collectives.launchers.arrivals import GAVE_UP
from collectives.launchers.directory import Deadline, Store
from collectives.launchers.meeting import host

PATIENCE = 10.0  # seconds until a process that lives, and has met as this rank, is what is wrong
_AGAIN, _TWICE, _WHO, _DONE = "again", "twice", "who", "done"
_SPOILED = "spoiled"  # which rank was found twice by one that has left
_PULSE = 0.2  # seconds between two looks
_BEGIN = 19  # of what /proc says of a process behind its name: when it began


class Attendance:
    """That a rank is in meeting ``number`` of a store, from its beginning to its end.

    ``opened``: returns what the store holds of a meeting of these ranks, by its number.
    """

    def __init__(self, opened: Callable[[int], Store], number: int, rank: int, size: int) -> None:
        self._opened, self._number, self._rank, self._size = opened, number, rank, size
        self._here = opened(number)
        self._next = 0.0
        self._doubted = False  # whether the process of the meeting before may still be in it
        self._earlier = ""  # another process that has come as this rank before
        self._spoiled: bytes | None = None  # the rank that was found twice before
        self._found: bytes | None = None  # and that is found twice now
        self._patience = Deadline(PATIENCE)

    @property
    def end(self) -> str:
        """The key under which this rank says that it has left."""
        return f"{_DONE}{self._rank}"

    def __enter__(self) -> Attendance:
        """Say that this process has come as its rank."""
        own = process(os.getpid())
        self._here.put(f"{_WHO}{self._rank}", own.encode())
        if self._number > 0:
            before = self._opened(self._number - 1)
            # Before it looks: who leaves says so, and looks for this then.
            before.put(f"{_AGAIN}{self._rank}", b"1")
            who = (before.find(f"{_WHO}{self._rank}") or b"").decode("utf-8", "replace")
            self._earlier = who if who != own else ""
            if before.find(self.end) is None:
                self._doubted = True
                before.put(_AGAIN, str(self._rank).encode())
            self._spoiled = before.find(_SPOILED)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Say that it has left; to another process of its rank, that this one was there."""
        with suppress(CollectiveError):
            if self._found is not None:
                self._here.put(_SPOILED, self._found)
            self._here.put(self.end, b"1" if error is None else GAVE_UP)
            if error is not None and self._here.find(f"{_AGAIN}{self._rank}") is not None:
                self._opened(self._number + 1).put(_TWICE, b"1")
        if isinstance(error, CollectiveTimeoutError) and self._earlier:
            raise CollectiveTimeoutError(
                f"{error}; another process has come as rank {self._rank} to this store before: "
                "look whether two were started with this rank",
                error.rank,
            ) from None

    def check(self) -> None:
        """Raise BootstrapError where a rank is seen to be there twice."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PULSE
        again = self._spoiled or self._here.find(_AGAIN)
        if again is not None:
            raise self._twice(again.decode("ascii", "replace"))
        if self._doubted and self._here.find(_TWICE) is not None:
            self._here.put(_AGAIN, str(self._rank).encode())  # for others who came too late
            raise self._twice(str(self._rank))
        if self._earlier and not self._doubted and self._patience.over():
            self._judge()

    def leave(self, error: BaseException, deadline: Deadline) -> None:
        """Nothing yet: the end of the meeting tells what there is to tell."""

    def _judge(self) -> None:
        """Raise where the process that has met as this rank still runs on this host."""
        number = self._earlier.rpartition(" ")[0].rpartition(" ")[2]
        if number.isdecimal() and process(int(number)) == self._earlier:
            raise self._twice(
                str(self._rank), f"; process {number} of this host has met the others there"
            )
        self._patience = Deadline(PATIENCE)

    def _twice(self, rank: str, how: str = "") -> BootstrapError:
        self._found = rank.encode()
        return BootstrapError(
            f"rank {rank} is there twice: two processes have come as rank {rank} to the store in "
            f"which the ranks meet{how} (this is rank {self._rank} of {self._size}): give each "
            "process its own rank; where one was started again, start all, with a new store",
            int(rank) if rank.isdecimal() else -1,
        )


def process(number: int) -> str:
    """Return what tells a process of this host from all others; it ends in number and begin."""
    begin = ""
    with suppress(OSError):
        said = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        begin = said.rpartition(")")[2].split()[_BEGIN]
    return f"{host()} {os.stat('/proc/self/ns/pid').st_ino} {number} {begin}"
