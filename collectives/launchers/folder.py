# SPDX-License-Identifier: Apache-2.0
"""A folder that all ranks reach, as a key-value store: one file per value, moved to its name.

The folder is its user's alone. Names begin with the job and the attempt. Files of a job of the same
name that was killed may still be there, so ranks first agree on a session: each leaves a number
drawn by lot, rank 0 writes the session's name with the numbers that it has read, and who finds its
own number there belongs to it. The name is rank 0's number. Until then rank 0 leaves, beside their
numbers, whom it misses, so that whose time is up first can say it. Rank 0 clears away all files at
the end. Who ends before all have met is told apart from who is slow (presence.py).
"""

from __future__ import annotations

import json
from typing import Any

from collectives.errors import CollectiveError
from collectives.launchers.directory import Deadline, StoreDirectory, attended, named
from collectives.launchers.files import Files
from collectives.launchers.launch import RENDEZVOUS, Launch
from collectives.launchers.presence import HELLO, LEFT, WAITS, Presence, clear_own

_SESSION = "session"


class Session:
    """A store in the files of one session."""

    def __init__(self, files: Files, name: str, presence: Presence, *, clears: bool) -> None:
        self._files, self._name, self._presence, self._clears = files, name, presence, clears

    def put(self, key: str, value: bytes) -> None:
        """Leave a value."""
        self._files.write(f"in-{self._name}-{key}", value)

    def find(self, key: str) -> bytes | None:
        """Return a value, None where there is none yet."""
        return self._files.read(f"in-{self._name}-{key}")

    def close(self) -> None:
        """Rank 0 clears away what all have left."""
        try:
            self._presence.release()
            if self._clears:
                clear_own(self._files, self._name)
        finally:
            self._files.close()


def open_folder(
    path: str, launch: Launch, deadline: Deadline, trouble: CollectiveError | None = None
) -> StoreDirectory:
    """Meet the other ranks in a folder.

    ``trouble``: why this rank cannot take part, which it says where it leaves before all have come.
    Raises InvalidArgumentError where the folder is not safe, SystemCallError where it cannot be
    used, CollectiveTimeoutError naming who has not come, BootstrapError where a rank ends.
    """
    files = Files(path, launch.job, launch.attempt)
    try:
        lead = launch.rank == 0
        presence = Presence(files, launch.rank, trouble)
        try:
            meet = _lead if lead else _follow
            name = meet(files, launch, presence, deadline)
        except BaseException as error:
            presence.leave(error)
            raise
    except BaseException:
        files.close()
        raise
    session = Session(files, name, presence, clears=lead)
    return StoreDirectory(session, launch.rank, launch.size, presence)


def _lead(files: Files, launch: Launch, presence: Presence, deadline: Deadline) -> str:
    """Name the session; who comes late, or comes again, is told anew."""
    files.clear((_SESSION, "in-", LEFT))
    name, size = presence.number, launch.size
    told: dict[str, str] = {}
    seen: dict[str, str] | None = None
    missing: list[int] = []

    def all_joined() -> bool:
        nonlocal told, seen
        numbers = {str(rank): _text(files.read(f"{HELLO}{rank}")) for rank in range(1, size)}
        missing[:] = [int(rank) for rank, number in numbers.items() if not number]
        if numbers != seen:
            waits = {"name": name, "missing": missing, "numbers": numbers}
            files.write(WAITS, json.dumps(waits).encode())
            seen = numbers
            for rank, number in numbers.items():
                if number:
                    presence.watch(int(rank), number)
        if missing:
            return False
        if numbers != told or not told:
            files.write(_SESSION, json.dumps({"name": name, "numbers": numbers}).encode())
            told = numbers
        missing[:] = [r for r in range(1, size) if files.read(f"in-{name}-joined-{r}") is None]
        return not missing

    attended(presence, all_joined, lambda: f"{named(missing)} not come to {RENDEZVOUS}", deadline)
    return name


def _follow(files: Files, launch: Launch, presence: Presence, deadline: Deadline) -> str:
    found: list[str] = []

    def of_this_rank(name: str) -> dict[str, Any]:
        """What rank 0 says, if it has read the number of this process, and is of no other job."""
        said = _said(files.read(name))
        mine = said.get("numbers", {}).get(str(launch.rank)) == presence.number
        if mine:
            presence.watch(0, said["name"])
        return said if mine else {}

    def told() -> bool:
        presence.say_hello()
        session = of_this_rank(_SESSION)
        if session:
            found.append(session["name"])
        else:
            of_this_rank(WAITS)  # to watch rank 0 from then on
        return bool(session)

    def late() -> str:
        waits = of_this_rank(WAITS)
        if not waits:
            return f"rank 0 has not come to {RENDEZVOUS}"
        return f"rank 0 waits: {named(waits['missing'])} not come to {RENDEZVOUS}"

    attended(presence, told, late, deadline)
    files.write(f"in-{found[0]}-joined-{launch.rank}", b"1")
    return found[0]


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("ascii", "replace")


def _said(data: bytes | None) -> dict[str, Any]:
    return {} if data is None else dict(json.loads(data))
