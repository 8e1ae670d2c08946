# SPDX-License-Identifier: Apache-2.0
"""Which of the ranks that meet in a folder are still there.

Each rank holds a file locked while it meets, named by a number drawn by lot. A rank has ended where
its file was seen held, and is not any more. So a process that is slow, or stopped, is no false
alarm, nor is what an earlier job left, nor a file system that does not carry locks between
machines: there nobody is ever seen, and a rank that is killed is missed when time is up. Heartbeats
would tell there, too, but not a stopped process from a dead one. Who gives up in an ordinary way
leaves a note beside it, which needs no locks.

Rank 0 watches all, the others rank 0, which tells them: that is as many looks as there are ranks.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress

from collectives.errors import BootstrapError, CollectiveError, CollectiveTimeoutError
from collectives.launchers.directory import Deadline
from collectives.launchers.files import Files
from collectives.launchers.notes import Hello, hello_of, note_of, session_of

HELD, LEFT, HELLO, WAITS, SESSION = "held-", "left-", "hello-", "waits", "session"
_NAP = 0.05  # seconds
_PULSE = 0.2  # seconds between two looks
_FAREWELL, _BRIEF = 2.0, 0.5  # seconds in which others read a note; of them after time is up
_LONGEST = 2000  # characters of a reason


class Presence:
    """That this rank is here, and which of the ranks that it watches are.

    ``trouble``: why this rank cannot take part, and will leave whatever else happens. ``size``: of
    how many ranks it is, 0: it does not say.
    """

    def __init__(
        self, files: Files, rank: int, trouble: CollectiveError | None = None, size: int = 0
    ) -> None:
        self._files, self._rank, self._trouble = files, rank, trouble
        self.number = secrets.token_hex(8)
        self._hello = Hello(self.number, size)
        self.earlier = ""  # what is known of a process of this rank that has met and still runs
        self._handle: int | None = files.hold(HELD + self.number)
        self._watched: dict[int, str] = {}
        self._seen: set[str] = set()  # the numbers whose files somebody held
        self._next = 0.0
        self._said = False
        self._failure = ""

    def watch(self, rank: int, number: str) -> None:
        """Watch a rank from now on; in the place of an earlier process of that rank."""
        self._watched[rank] = number

    def say_hello(self) -> None:
        """Leave the number for rank 0, again where an earlier job of this name took it away.

        It takes the place of what another process of this rank has left: an earlier one, which may
        still run. Raises BootstrapError where another one has taken this one's.
        """
        name, own = f"{HELLO}{self._rank}", str(self._hello).encode()
        there = hello_of(self._files, name)
        if there is None:
            self._hold_again()
            self._files.claim(name, own)  # another process of this rank may do so at this moment
            there = hello_of(self._files, name)
        if there is None or there.number != self.number:
            if there is not None and self._said:
                raise self._taken("has come after this one")
            if there is not None and self.alive(there.number):
                self.earlier = self._earlier()
            self._files.write(name, own)
        self._said = True

    def _hold_again(self) -> None:
        """Hold a new file where an earlier job took the first away, beside what was said."""
        if self._said and self._handle is not None:
            handle = self._files.hold(HELD + self.number)
            os.close(self._handle)
            self._handle = handle

    def lead(self, begins: Callable[[], None]) -> None:
        """Begin as rank 0. Raises BootstrapError where another process of it waits already."""
        with self._files.alone(f"claim-{self._rank}"):
            earlier = session_of(self._files, WAITS).get("name")
            if earlier is not None and self.alive(earlier):
                if self._files.read(joined(earlier, 0)) is None:
                    raise self._taken("waits there already")
                self.earlier = self._earlier()
            begins()

    def join(self, session: str) -> None:
        """Say that this rank has met the others. Raises BootstrapError where another one has."""
        number = self.number.encode()
        if self._files.claim(joined(session, self._rank), number) != number:
            raise self._taken("has met the others")

    def alive(self, number: str) -> bool:
        """Return whether a process that has drawn this number is seen to be there."""
        return self._files.held(HELD + number) is True

    def check(self) -> None:
        """Raise BootstrapError where a rank has left, or ended.

        CollectiveTimeoutError where it left as its time was up: this rank waited for the same.
        """
        if self._failure:
            raise BootstrapError(f"the ranks have failed to meet before: {self._failure}")
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PULSE
        self._files.check_there()
        for rank, number in self._watched.items():
            self._check(rank, number)

    def leave(self, error: BaseException, deadline: Deadline) -> None:
        """Tell the others why, wait a moment until they know, and remove what this rank left."""
        if self._handle is None:
            return
        error = self._trouble or error
        self._failure = _reason(error)
        with suppress(CollectiveError):
            self._files.write(LEFT + self.number, self._note(error))
        self.release()
        with suppress(CollectiveError):
            if self._rank != 0:  # rank 0 does not wait for it any more
                self._remove_hello()
            with suppress(CollectiveTimeoutError):
                Deadline(min(_FAREWELL, max(_BRIEF, deadline.left()))).until(
                    self._all_know, lambda: ""
                )
            self._remove_all()

    def release(self) -> None:
        """Let go of the file, and remove it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(CollectiveError):
                self._files.remove(HELD + self.number)
            os.close(handle)

    def _note(self, error: BaseException) -> bytes:
        culprit, late = getattr(error, "rank", None), isinstance(error, CollectiveTimeoutError)
        told = late or isinstance(error, BootstrapError)
        if told and culprit is not None and culprit != self._rank:
            text = str(error)
        else:
            culprit, why = self._rank, _reason(error)
            how = "has given up" if late else f"has left while the ranks met in {self._files.place}"
            text = f"rank {self._rank} {how}: {why}"
        said = {"rank": culprit, "text": text[:_LONGEST], "late": late}
        return json.dumps(said).encode()

    def _check(self, rank: int, number: str) -> None:
        ended = self._ended(number)
        note = note_of(self._files, LEFT + number)  # written before the file is let go
        if (ended or note is not None) and self._displaced(rank, number):
            return
        if note is not None:
            raise note
        if ended:
            time.sleep(_NAP)  # in which a folder that is being removed is gone
            self._files.check_there()
        if ended:
            raise BootstrapError(
                f"rank {rank} has ended while the ranks met in {self._files.place}: it was "
                "killed, or its program ended; look at what it printed",
                rank,
            )

    def _displaced(self, rank: int, number: str) -> bool:
        """Whether another process has come as this rank, which will be watched instead."""
        hello = hello_of(self._files, f"{HELLO}{rank}") if rank else None
        return hello is not None and hello.number != number

    def _earlier(self) -> str:
        return (
            f"; another process of rank {self._rank} was there before, and still runs: look "
            "whether two were started with this rank"
        )

    def _taken(self, how: str) -> BootstrapError:
        return BootstrapError(
            f"rank {self._rank} is there twice: another process of rank {self._rank} {how}, in "
            f"{self._files.place}: give each process of the job its own rank, and each job "
            "its own name (COLLECTIVES_JOB)",
            self._rank,
        )

    def _ended(self, number: str) -> bool:
        held = self._files.held(HELD + number)
        if held:
            self._seen.add(number)
        return held is False and number in self._seen

    def _all_know(self) -> bool:
        """Whether nobody is there any more who has not read the note of this rank."""
        if self._rank != 0:
            number = self._watched.get(0)
            return number is None or self._ended(number) or self._has_left(number)
        return not any(
            self._is_of(rank, number) and not self._ended(number)
            for rank, number in self._watched.items()
        )

    def _is_of(self, rank: int, number: str) -> bool:
        try:
            hello = hello_of(self._files, f"{HELLO}{rank}")
        except BootstrapError:  # it is damaged: the rank may still be there
            return True
        return hello is not None and hello.number == number

    def _has_left(self, number: str) -> bool:
        return self._files.read(LEFT + number) is not None

    def _remove_hello(self) -> None:
        if self._is_of(self._rank, self.number):  # not of a process that came after
            self._files.remove(f"{HELLO}{self._rank}")

    def _remove_all(self) -> None:
        """Remove the note; all that is there where rank 0 leaves, or has ended and left it."""
        lead = self._watched.get(0)
        orphaned = lead is not None and not self._has_left(lead) and self._ended(lead)
        self._files.remove(LEFT + self.number)
        if self._rank == 0:
            clear_own(self._files, self.number)
        elif orphaned and not any(self._files.held(name) for name in self._files.names(HELD)):
            self._files.clear()  # this rank is the last


def joined(session: str, rank: int) -> str:
    """Return the name of the file that says that a rank has met the others of a session."""
    return f"in-{session}-joined-{rank}"


def clear_own(files: Files, number: str) -> None:
    """Remove, as rank 0, all files of the job, unless a later one of its name meets already."""
    later = False
    with suppress(BootstrapError):  # it is damaged, and nobody's
        later = session_of(files, WAITS).get("name", number) != number
    files.clear((f"in-{number}-", HELD + number) if later else ("",))


def _reason(error: BaseException) -> str:
    name = type(error).__name__
    return str(error) if isinstance(error, CollectiveError) else f"{name}: {error}".rstrip(": ")
