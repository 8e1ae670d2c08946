# SPDX-License-Identifier: Apache-2.0
"""Where libnccl is, and that there is one only.

Two copies in a process do not know of one another: communicators of one are garbage to the other,
and both take the same resources. So what is loaded already is taken, and a second one is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

from collectives.errors import InvalidArgumentError, UnsupportedError

SONAME = "libnccl.so.2"
VARIABLE = "COLLECTIVES_NCCL"
OFF = "off"  # of the variable: it names none, and communicators do not choose NCCL (rivals/)

_MAPS = "/proc/self/maps"
_NAME = re.compile(r"libnccl\.so(\.\d+)*")
_DELETED = " (deleted)"  # what the kernel appends where the file is gone


class Found(NamedTuple):
    """A library to open, and how it was found: the words of a sentence."""

    path: str
    how: str


def loaded(maps: str = _MAPS) -> list[str]:
    """Return the paths of all libnccl that this process has loaded, each file once."""
    files: dict[tuple[str, str], str] = {}
    with open(maps, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            # Addresses, rights, offset, device, inode, path.
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) < 6:
                continue
            path = fields[5].removesuffix(_DELETED)
            if _NAME.fullmatch(os.path.basename(path)):
                files.setdefault((fields[3], fields[4]), path)
    return list(files.values())


def refuse_copies(here: list[str]) -> None:
    """Raise UnsupportedError where more than one libnccl is loaded."""
    if len(here) > 1:
        raise UnsupportedError(
            f"{len(here)} copies of NCCL are in this process, {' and '.join(here)}, which do not "
            "know of one another: see to it that all packages load one file (uninstall one, or "
            f"load yours before the others, with LD_PRELOAD or {VARIABLE})"
        )


def refuse_others(path: str) -> None:
    """Raise UnsupportedError where another libnccl than this one has been loaded meanwhile."""
    for other in loaded():
        if not same_file(other, path):
            raise UnsupportedError(
                f"{other} was loaded in this process, beside {path}, which is in use: two copies "
                "of NCCL do not know of one another"
            )


def find(path: str | None = None, maps: str = _MAPS) -> Found:
    """Return which libnccl to open: named, loaded, of PyPI, or of the system, in this order.

    Raises UnsupportedError where there would be two in this process, and InvalidArgumentError where
    the one that is named is not there.
    """
    here = loaded(maps)
    refuse_copies(here)
    chosen = _chosen(path)
    if chosen is not None:
        if here and not same_file(chosen.path, here[0]):
            raise UnsupportedError(
                f"{chosen.how} names {chosen.path}, but {here[0]} is loaded in this process: two "
                f"copies of NCCL do not know of one another. Leave {chosen.how} out, or load yours "
                "before what loads the other"
            )
        return chosen
    if here:
        return Found(here[0], "loaded in this process")
    for candidate in _of_packages():
        return Found(candidate, "the PyPI package of NCCL")
    return Found(SONAME, "the system's")


def _chosen(path: str | None) -> Found | None:
    """Return what the caller or the environment names."""
    variable = os.environ.get(VARIABLE)
    for how, said in (("path", path), (VARIABLE, None if variable == OFF else variable or None)):
        if said is not None:
            return named(how, said)
    return None


def named(how: str, path: str) -> Found:
    """Return the library that a file or a folder is meant to be. Raises InvalidArgumentError."""
    whole = os.path.join(path, SONAME) if os.path.isdir(path) else path
    if not os.path.isfile(whole):
        raise InvalidArgumentError(
            f"{how} names {path}, where no {SONAME} is: give the file, or its folder"
        )
    return Found(os.path.abspath(whole), how)


def same_file(one: str, other: str) -> bool:
    """Whether two paths lead to one file that is there."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # the one that is loaded was replaced meanwhile
        return False


def _of_packages() -> Iterator[str]:
    """Yield the libraries of nvidia-nccl-cu12, -cu13 and the like, which share a folder."""
    try:
        spec = find_spec("nvidia.nccl")
    except ModuleNotFoundError:  # there is no nvidia at all
        return
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        candidate = os.path.join(folder, "lib", SONAME)
        if os.path.isfile(candidate):
            yield candidate
