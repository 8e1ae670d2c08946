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
from contextlib import suppress
from typing import Any

from collectives.errors import BootstrapError, CollectiveError
from collectives.launchers.directory import Deadline, StoreDirectory, attended, named
from collectives.launchers.files import Files
from collectives.launchers.launch import Launch
from collectives.launchers.notes import Hello, hello_of, session_of
from collectives.launchers.presence import (
    HELLO,
    LEFT,
    SESSION,
    WAITS,
    Presence,
    clear_own,
    joined,
)

_PATIENCE = 1.0  # seconds in which others come to be told


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
                with suppress(CollectiveError):  # a folder that is gone needs none
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
        presence = Presence(files, launch.rank, trouble, launch.size)
        try:
            name = (_Lead if lead else _Follow)(files, launch, presence).meet(deadline)
        except BaseException as error:
            presence.leave(error, deadline)
            raise
    except BaseException:
        files.close()
        raise
    session = Session(files, name, presence, clears=lead)
    return StoreDirectory(session, launch.rank, launch.size, presence)


class _Lead:
    """Rank 0: names the session; who comes late, or comes again, is told anew."""

    def __init__(self, files: Files, launch: Launch, presence: Presence) -> None:
        self._files, self._launch, self._presence = files, launch, presence
        self._seen: dict[str, str] | None = None
        self._told: dict[str, str] = {}
        self._missing: list[int] = []
        self._deadline = Deadline(0)
        self._patience: Deadline | None = None

    def meet(self, deadline: Deadline) -> str:
        """Return the name."""
        name, self._deadline = self._presence.number, deadline
        self._presence.lead(self._begin)
        attended(
            self._presence,
            self._all_joined,
            lambda: (
                f"{named(self._missing)} not come to {self._files.place}{self._presence.earlier}"
            ),
            deadline,
        )
        self._presence.join(name)
        return name

    def _begin(self) -> None:
        self._files.clear((SESSION, "in-", LEFT))
        self._missing = list(range(1, self._launch.size))
        self._write(WAITS, dict.fromkeys(map(str, self._missing), ""))

    def _write(self, name: str, numbers: dict[str, str]) -> None:
        said = {"name": self._presence.number, "size": self._launch.size}
        told = said | {"missing": self._missing, "numbers": numbers}
        self._files.write(name, json.dumps(told).encode())

    def _all_joined(self) -> bool:
        hellos = self._hellos()
        numbers = {str(rank): self._number(rank, hello) for rank, hello in hellos.items()}
        self._missing = [rank for rank, hello in hellos.items() if hello is None]
        if numbers != self._seen:
            self._write(WAITS, numbers)
            self._seen = numbers
            for rank, hello in hellos.items():
                if hello is not None:
                    self._presence.watch(rank, numbers[str(rank)])
        if self._differ(hellos) or self._missing:
            return False
        if numbers != self._told or not self._told:
            self._write(SESSION, numbers)
            self._told = numbers
        name = self._presence.number
        ranks = range(1, self._launch.size)
        self._missing = [r for r in ranks if self._files.read(joined(name, r)) is None]
        return not self._missing

    def _number(self, rank: int, hello: Hello | None) -> str:
        """Return the number of the process that is this rank: that which has met, if one has."""
        met = self._files.read(joined(self._presence.number, rank))
        return met.decode("ascii", "replace") if met else hello.number if hello else ""

    def _hellos(self) -> dict[int, Hello | None]:
        """What each rank says of itself; also those that there are not, if they are alive."""
        hellos = {r: hello_of(self._files, f"{HELLO}{r}") for r in range(1, self._launch.size)}
        for name in self._files.names(HELLO):
            rank = name.removeprefix(HELLO)
            if rank.isdecimal() and int(rank) not in hellos:
                hello = hello_of(self._files, name)
                if hello is not None and self._presence.alive(hello.number):
                    hellos[int(rank)] = hello
        return hellos

    def _differ(self, hellos: dict[int, Hello | None]) -> bool:
        """Whether ranks are of different sizes; raises once all have come to be told, or soon.

        Only those that are seen to be there count, not what an earlier job has left.
        """
        own = self._launch.size
        sizes = {
            rank: hello.size
            for rank, hello in hellos.items()
            if hello and hello.size not in (0, own) and self._presence.alive(hello.number)
        }
        if not sizes:
            self._patience = None
            return False
        if self._patience is None:
            self._patience = Deadline(min(_PATIENCE, self._deadline.left() / 2))
        absent = [rank for rank in range(1, max(own, *sizes.values())) if not hellos.get(rank)]
        if not absent or self._patience.over():
            rank = min(sizes)
            raise _sizes_differ(rank, sizes[rank], own)
        return True


class _Follow:
    """Another rank: says that it is there, and waits for the name."""

    def __init__(self, files: Files, launch: Launch, presence: Presence) -> None:
        self._files, self._launch, self._presence = files, launch, presence
        self._name = ""

    def meet(self, deadline: Deadline) -> str:
        """Return the name."""
        attended(self._presence, self._is_told, self._late, deadline)
        self._presence.join(self._name)
        return self._name

    def _is_told(self) -> bool:
        self._presence.say_hello()
        session = self._of_this_rank(SESSION)
        if not session:
            self._of_this_rank(WAITS)  # to watch rank 0 from then on
            return False
        size = session.get("size", self._launch.size)
        if size != self._launch.size:  # which rank 0 has not seen: files have no locks here
            raise _sizes_differ(self._launch.rank, self._launch.size, size)
        self._name = session["name"]
        return True

    def _of_this_rank(self, name: str) -> dict[str, Any]:
        """What rank 0 says, if it has read the number of this process, and is of no other job."""
        said = session_of(self._files, name)
        mine = said.get("numbers", {}).get(str(self._launch.rank)) == self._presence.number
        if mine:
            self._presence.watch(0, said["name"])
        return said if mine else {}

    def _late(self) -> str:
        waits = self._of_this_rank(WAITS)
        if not waits:
            return f"rank 0 has not come to {self._files.place}{self._presence.earlier}"
        if not waits["missing"]:
            return f"rank 0 waits for others that have come to {self._files.place}"
        return f"rank 0 waits: {named(waits['missing'])} not come to {self._files.place}"


def _sizes_differ(rank: int, size: int, lead: int) -> BootstrapError:
    return BootstrapError(
        f"rank {rank} was started with WORLD_SIZE {size}, rank 0 with {lead}: give all ranks the "
        "number of all",
        rank,
    )
