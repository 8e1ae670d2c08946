# SPDX-License-Identifier: Apache-2.0
"""The files of one job in a folder that is its user's alone: written at once, read whole, locked.

A lock (flock) is let go by the kernel when its process ends, however it does, and file systems of
several machines (NFS, Lustre, GPFS, CephFS) tell the others, unless they are mounted without it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from collectives.errors import CollectiveError, InvalidArgumentError, SystemCallError
from collectives.launchers.launch import RENDEZVOUS

_LONGEST = 1 << 20  # bytes of a file: that of the session has a number for each rank
_TRIES, _NAP = 100, 0.01  # seconds


class Files:
    """The files of one job and attempt in a folder; everything else there is left alone."""

    def __init__(self, path: str, job: str, attempt: int) -> None:
        self._path = path
        self._folder = _opened(path)
        name = hashlib.sha256(job.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._prefix = f"coll-{name}-{attempt}-"
        self.place = f"{RENDEZVOUS} ({path}, job {job!r:.80}, attempt {attempt})"  # in errors

    def write(self, name: str, data: bytes) -> None:
        """Put a file there at once, or put it in the place of the one of that name."""

        def publish(draft: str, handle: int) -> None:
            with open(handle, "wb") as file:
                file.write(data)
            self._name_it(draft, name)

        self._drafted(publish)

    def claim(self, name: str, data: bytes) -> bytes | None:
        """Put a file there, if there is none of that name; return what is there then."""

        def publish(draft: str, handle: int) -> None:
            with open(handle, "wb") as file:
                file.write(data)
            try:
                with suppress(FileExistsError):
                    os.link(
                        draft, self._prefix + name,
                        src_dir_fd=self._folder, dst_dir_fd=self._folder,
                    )  # fmt: skip
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=self._folder)

        self._drafted(publish)
        return self.read(name)

    def hold(self, name: str) -> int:
        """Put an empty file there that is locked, and return what to close to let go of it."""
        held = -1

        def publish(draft: str, handle: int) -> None:
            nonlocal held
            try:
                with suppress(OSError):  # a file system without locks: nobody sees it as held, then
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._name_it(draft, name)
            except OSError:
                os.close(handle)
                raise
            held = handle

        self._drafted(publish)
        return held

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Keep others out that come here with this name, for a second; where files have locks."""
        handle = -1
        try:
            for _ in range(_TRIES):
                with self._explained("write"):
                    handle = os.open(
                        self._prefix + name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600,
                        dir_fd=self._folder,
                    )  # fmt: skip
                if self._locked(handle, name):
                    break
                os.close(handle)
                handle = -1
                time.sleep(_NAP)
            yield
        finally:
            if handle >= 0:
                with suppress(CollectiveError):
                    self.remove(name)
                os.close(handle)

    def _locked(self, handle: int, name: str) -> bool:
        """Lock a file, if nobody has, and it still has its name; True, too, without locks."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = os.stat(self._prefix + name, dir_fd=self._folder, follow_symlinks=False)
        except (BlockingIOError, FileNotFoundError):
            return False
        except OSError:
            return True
        return there.st_ino == os.fstat(handle).st_ino

    def held(self, name: str) -> bool | None:
        """Return whether a process holds this file, None where that cannot be told."""
        try:
            handle = os.open(self._prefix + name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self._folder)
        except OSError as error:
            return False if isinstance(error, FileNotFoundError) else None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return True if isinstance(error, BlockingIOError) else None
        finally:
            os.close(handle)
        return False

    def names(self, beginning: str) -> list[str]:
        """Return which files there are whose names begin so."""
        with self._explained("list"):
            found = os.listdir(self._folder)
        wanted = self._prefix + beginning
        return [name.removeprefix(self._prefix) for name in found if name.startswith(wanted)]

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with self._explained("clear"), suppress(FileNotFoundError):
            os.unlink(self._prefix + name, dir_fd=self._folder)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None where it is not there."""
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW
            handle = os.open(self._prefix + name, flags, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("read", error) from error
        with open(handle, "rb") as file, self._explained("read"):
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                raise InvalidArgumentError(
                    f"{self._prefix}{name} in {RENDEZVOUS} is not a file of this user: remove it"
                )
            return file.read(_LONGEST)

    def clear(self, beginnings: tuple[str, ...] = ("",)) -> None:
        """Remove the files whose names begin with one of these."""
        wanted = tuple(self._prefix + beginning for beginning in beginnings)
        with self._explained("clear"):
            for name in os.listdir(self._folder):
                if name.startswith(wanted) or (
                    "" in beginnings and name.startswith("." + self._prefix)
                ):
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=self._folder)

    def check_there(self) -> None:
        """Raise SystemCallError where the folder is not there any more."""
        if self._removed():
            raise self._failed("find", FileNotFoundError())

    def path_of(self, name: str) -> str:
        """Return the path of a file, to tell people."""
        return os.path.join(self._path, self._prefix + name)

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._folder)

    def _removed(self) -> bool:
        try:
            return os.fstat(self._folder).st_nlink == 0
        except OSError:  # of a folder of another machine
            return True

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Turn an OSError into SystemCallError."""
        try:
            yield
        except OSError as error:
            raise self._failed(what, error) from error

    def _failed(self, what: str, error: OSError) -> SystemCallError:
        if self._removed():
            return SystemCallError(
                f"the folder of {RENDEZVOUS}, {self._path}, has been removed while ranks used it"
            )
        return SystemCallError(f"cannot {what} the folder of {RENDEZVOUS}, {self._path}: {error}")

    def _draft(self) -> tuple[str, int]:
        draft = f".{self._prefix}{secrets.token_hex(8)}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return draft, os.open(draft, flags, 0o600, dir_fd=self._folder)

    def _drafted(self, publish: Callable[[str, int], None]) -> None:
        """Make a draft and publish it; another one where an earlier job's end clears it away."""
        with self._explained("write"):
            for left in reversed(range(_TRIES)):
                try:
                    return publish(*self._draft())
                except FileNotFoundError:
                    if left == 0 or self._removed():
                        raise

    def _name_it(self, draft: str, name: str) -> None:
        target = self._prefix + name
        os.replace(draft, target, src_dir_fd=self._folder, dst_dir_fd=self._folder)


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
        raise SystemCallError(f"cannot {what} the folder of {RENDEZVOUS}: {error}") from error
