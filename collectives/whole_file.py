# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all, whoever reads them meanwhile."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

_PRIVATE = 0o600
_USUAL = 0o666  # of which the umask takes away, as of all that programs create
_LINKS = 40  # that a name may lead through, as in the kernel


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file in a folder that exists; where that fails, leave what was there.

    A symbolic link is followed. A device or a pipe is written to: it is not ours to replace. The
    mode of a new file is subject to the umask; one that was there keeps its own. Raises OSError,
    which names the file.
    """
    name = os.fspath(path)
    try:
        _write(name, text.encode("utf-8"))
    except OSError as error:  # of a draft, or of a full disk, which names no file
        raise OSError(error.errno, error.strerror, name) from error


def replace_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file of our own, for this user only, in the place of whatever has its name.

    So nobody who may write into its folder makes this process write elsewhere, or wait for a pipe.
    Raises OSError, which names the file.
    """
    name = os.fspath(path)
    try:
        _replace(name, text.encode("utf-8"), _PRIVATE)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def _write(name: str, content: bytes) -> None:
    own = _own_descriptor(name)
    if own is not None:  # opened anew, a file would be written from its beginning
        _fill(os.dup(own), content)
        return
    try:
        there = os.stat(name)
    except FileNotFoundError:  # also the link to a file that is to come
        _replace(os.path.realpath(name), content, _USUAL)
        return
    if stat.S_ISREG(there.st_mode):
        _replace(os.path.realpath(name), content, _USUAL, stat.S_IMODE(there.st_mode))
    else:
        _fill(os.open(name, os.O_WRONLY | os.O_CLOEXEC), content)


def _replace(target: str, content: bytes, mode: int, keep: int | None = None) -> None:
    """Put a file in the place of ``target``; ``keep``: the mode that it has."""
    draft = str(Path(target).parent / f".{secrets.token_hex(8)}.draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        if keep is not None:
            os.fchmod(handle, keep)
        _fill(handle, content)
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def _fill(handle: int, content: bytes) -> None:
    with open(handle, "wb") as file:
        file.write(content)


def _own_descriptor(name: str) -> int | None:
    """Return which of this process's open files is meant, by /dev/stdout or /dev/fd/3, if any."""
    opened = f"/proc/{os.getpid()}/fd"
    for _ in range(_LINKS):
        folder, last = os.path.split(name)
        folder = os.path.realpath(folder)
        if folder == opened and last.isdecimal():
            return int(last)
        at = os.path.join(folder, last)
        if not os.path.islink(at):
            return None
        name = os.path.join(folder, os.readlink(at))
    return None
