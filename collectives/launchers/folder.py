# SPDX-License-Identifier: Apache-2.0
"""A folder that all ranks reach, as a key-value store: one file per value, moved to its name.

The folder is its user's alone. Names begin with the job and the attempt. Files of a job of the same
name that was killed may still be there, so ranks first agree on a session: each leaves a number
drawn by lot, rank 0 writes the session's name with the numbers that it has read, and who finds its
own number there belongs to it. Until then rank 0 leaves, beside their numbers, whom it misses, so
that whose time is up first can say it. Rank 0 clears away all files at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from collectives.errors import InvalidArgumentError, SystemCallError
from collectives.launchers.directory import Deadline, StoreDirectory
from collectives.launchers.launch import RENDEZVOUS, Launch

_LONGEST = 1 << 20  # bytes of a file: that of the session has a number for each rank


class Files:
    """The files of one job and attempt in a folder; everything else there is left alone."""

    def __init__(self, path: str, job: str, attempt: int) -> None:
        self._folder = _opened(path)
        name = hashlib.sha256(job.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._prefix = f"coll-{name}-{attempt}-"

    def write(self, name: str, data: bytes) -> None:
        """Put a file there at once, or put it in the place of the one of that name."""
        draft = f".{self._prefix}{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with _explained("write"):
            handle = os.open(draft, flags, 0o600, dir_fd=self._folder)
            with open(handle, "wb") as file:
                file.write(data)
            target = self._prefix + name
            os.replace(draft, target, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None where it is not there."""
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW
            handle = os.open(self._prefix + name, flags, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed("read", error) from error
        with open(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                raise InvalidArgumentError(
                    f"{self._prefix}{name} in {RENDEZVOUS} is not a file of this user: remove it"
                )
            return file.read(_LONGEST)

    def clear(self, beginnings: tuple[str, ...] = ("",)) -> None:
        """Remove the files whose names begin with one of these."""
        wanted = tuple(self._prefix + beginning for beginning in beginnings)
        with _explained("clear"):
            for name in os.listdir(self._folder):
                if name.startswith(wanted) or (
                    "" in beginnings and name.startswith("." + self._prefix)
                ):
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=self._folder)

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._folder)


class Session:
    """A store in the files of one session."""

    def __init__(self, files: Files, name: str, *, clears: bool) -> None:
        self._files, self._name, self._clears = files, name, clears

    def put(self, key: str, value: bytes) -> None:
        """Leave a value."""
        self._files.write(f"in-{self._name}-{key}", value)

    def find(self, key: str) -> bytes | None:
        """Return a value, None where there is none yet."""
        return self._files.read(f"in-{self._name}-{key}")

    def close(self) -> None:
        """Rank 0 clears away what all have left."""
        try:
            if self._clears:
                self._files.clear()
        finally:
            self._files.close()


def open_folder(path: str, launch: Launch, deadline: Deadline) -> StoreDirectory:
    """Meet the other ranks in a folder.

    Raises InvalidArgumentError where the folder is not safe, SystemCallError where it cannot be
    used, CollectiveTimeoutError naming who has not come.
    """
    files = Files(path, launch.job, launch.attempt)
    try:
        lead = launch.rank == 0
        name = _lead(files, launch.size, deadline) if lead else _follow(files, launch, deadline)
    except BaseException:
        files.close()
        raise
    return StoreDirectory(Session(files, name, clears=lead), launch.rank, launch.size)


def _lead(files: Files, size: int, deadline: Deadline) -> str:
    """Name the session; who comes late, or comes again, is told anew."""
    files.clear(("session", "in-", "waits"))
    name = secrets.token_hex(8)
    told: dict[str, str] = {}
    seen: dict[str, str] = {}
    missing: list[int] = []

    def all_joined() -> bool:
        nonlocal told, seen
        numbers = {str(rank): _text(files.read(f"hello-{rank}")) for rank in range(1, size)}
        missing[:] = [int(rank) for rank, number in numbers.items() if not number]
        if missing:
            if numbers != seen:
                waits = {"missing": missing, "numbers": numbers}
                files.write("waits", json.dumps(waits).encode())
                seen = numbers
            return False
        if numbers != told or not told:
            files.write("session", json.dumps({"name": name, "numbers": numbers}).encode())
            told = numbers
        missing[:] = [r for r in range(1, size) if files.read(f"in-{name}-joined-{r}") is None]
        return not missing

    deadline.until(all_joined, lambda: f"ranks {missing} have not come to {RENDEZVOUS}")
    return name


def _follow(files: Files, launch: Launch, deadline: Deadline) -> str:
    number = secrets.token_hex(8)
    files.write(f"hello-{launch.rank}", number.encode())
    found: list[str] = []

    def told() -> bool:
        session = _session(files.read("session"))
        if session.get("numbers", {}).get(str(launch.rank)) != number:
            return False
        found.append(session["name"])
        return True

    def late() -> str:
        waits = _session(files.read("waits"))
        if waits.get("numbers", {}).get(str(launch.rank)) != number:
            return f"rank 0 has not come to {RENDEZVOUS}"
        return f"rank 0 waits: ranks {waits['missing']} have not come to {RENDEZVOUS}"

    deadline.until(told, late)
    files.write(f"in-{found[0]}-joined-{launch.rank}", b"1")
    return found[0]


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("ascii", "replace")


def _session(data: bytes | None) -> dict[str, Any]:
    return {} if data is None else dict(json.loads(data))


def _opened(path: str) -> int:
    """Open the folder, made if need be, and check that nobody else can write or read there."""
    if not os.path.isabs(path):
        raise InvalidArgumentError(
            f"{RENDEZVOUS} is '{path}': give an absolute path, equal on all ranks"
        )
    with suppress(FileExistsError), _explained(f"make '{path}' in"):
        os.mkdir(path, 0o700)
    with _explained(f"open '{path}' as"):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    status = os.fstat(folder)
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.geteuid() or mode & 0o077:
        os.close(folder)
        raise InvalidArgumentError(
            f"{RENDEZVOUS}={path} belongs to user {status.st_uid} with mode {mode:03o}: others "
            f"could speak to the ranks there; it must belong to user {os.geteuid()} with mode 700 "
            f"(chmod 700 {path})"
        )
    return folder


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn an OSError, but that of a file that is there already, into SystemCallError."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise _failed(what, error) from error


def _failed(what: str, error: OSError) -> SystemCallError:
    return SystemCallError(f"cannot {what} the folder of {RENDEZVOUS}: {error}")
