# SPDX-License-Identifier: Apache-2.0
"""Names of namespaces, which say whose they are; the processes in one; ending and sweeping."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import time
from pathlib import Path

from tests.hosts.tools import call

NAMED = Path("/run/netns")
PREFIX = "coll-hosts"
NAME = re.compile(rf"{PREFIX}-(?P<pid>\d+)-(?P<start>\d+)-[0-9a-f]+-\w+")
PATIENCE = 10.0  # seconds, in which processes that were killed must be gone


def started(pid: int) -> int | None:
    """Return when a process began, in ticks since boot; None where it is dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = text.rpartition(")")[2].split()  # what precedes may hold any character
    return None if state in "ZX" else int(fields[18])


def fresh() -> str:
    """Return the first part of new names: this process and a random number."""
    pid = os.getpid()
    return f"{PREFIX}-{pid}-{started(pid)}-{secrets.token_hex(3)}"


def names(first: str = PREFIX) -> list[str]:
    """Return the names of namespaces that begin so."""
    if not NAMED.is_dir():
        return []
    return sorted(path.name for path in NAMED.iterdir() if path.name.startswith(f"{first}-"))


def orphaned(name: str) -> bool:
    """Return whether the process that made this namespace is dead."""
    match = NAME.fullmatch(name)
    # A process number may be that of another by now; the time of its start is not.
    return match is not None and started(int(match["pid"])) != int(match["start"])


def processes(name: str) -> list[int]:
    """Return the processes in a namespace, but for this one."""
    try:
        wanted = (NAMED / name).stat()
    except FileNotFoundError:
        return []
    found = []
    for entry in Path("/proc").iterdir():
        # Processes end while we look.
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and os.path.samestat((entry / "ns/net").stat(), wanted):
                found.append(int(entry.name))
    return sorted(set(found) - {os.getpid()})


def end_processes(name: str) -> None:
    """Kill what runs in a namespace, also what is being forked just now.

    Raises:
        RuntimeError: a process was still there after ``PATIENCE``.
    """
    end = time.monotonic() + PATIENCE
    while left := processes(name):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > end:
            raise RuntimeError(f"processes {left} in namespace {name} outlived SIGKILL")
        time.sleep(0.002)


def remove(name: str) -> None:
    """End the processes of a namespace and take away its name; one that is gone is no matter.

    Its links go with it, and their other ends.
    """
    end_processes(name)
    end = time.monotonic() + PATIENCE
    while (NAMED / name).exists():
        try:
            call("ip", "netns", "delete", name)
        except RuntimeError:  # also where another run sweeps the same name at this moment
            if time.monotonic() > end:
                raise
            time.sleep(0.002)


def sweep() -> list[str]:
    """Remove what runs that were killed have left; return the names."""
    left = [name for name in names() if orphaned(name)]
    for name in left:
        remove(name)
    return left
