# SPDX-License-Identifier: Apache-2.0
"""Where a trace goes: what is refused before its block begins."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from collectives.names import integer
from collectives.topology.checked import shown

_MOST_EVENTS = 1 << 24
_OPENED = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


def checked(path: object, events: object) -> tuple[Path, int, str]:
    """Return the file and how many events to keep, or why it is none, or no number; else ""."""
    most = integer(events)
    if most is None or not 1 <= most <= _MOST_EVENTS:
        why = f"events is {shown(events)}: give how many to keep, 1 to {_MOST_EVENTS}"
        return Path(), 0, why
    try:
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
        if isinstance(name, str) and Path(name).name and b"\0" not in os.fsencode(name):
            return Path(name), most, ""
    except Exception:  # half of a letter; a path that tells no name: the others are waiting
        pass
    return Path(), 0, f'path is {shown(path)}: give a file name, "t.json"'


def unwritable(path: Path) -> str:
    """Return why there can be no such file; "" where there can. Leaves what is there as it is."""
    try:
        mode = _mode(path)
        if mode is None:
            target = os.path.realpath(path)  # a link may lead to a file that is to come
            os.close(os.open(target, _OPENED | os.O_CREAT | os.O_EXCL))
            os.unlink(target)
        elif stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISCHR(mode):
            os.close(os.open(path, _OPENED))
        else:  # not opened: whoever opens a pipe waits for its reader
            return f"cannot write {path}: it is no regular file, and no device of characters"
        if mode is not None and stat.S_ISREG(mode):
            _check_folder(path)
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return ""


def is_special(path: Path) -> bool:
    """Whether it is /dev/null or the like, or a folder. Raises OSError where nobody can tell."""
    mode = _mode(path)
    return mode is not None and not stat.S_ISREG(mode)


def _mode(path: Path) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _check_folder(path: Path) -> None:
    """Raise OSError where no file can be put in the place of this one."""
    with tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))):
        pass
