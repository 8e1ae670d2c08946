# SPDX-License-Identifier: Apache-2.0
"""What ranks that meet in a folder write there for each other: numbers and notes, read with care.

All is written at once, so what cannot be read was damaged: by hand, or as a machine went down.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from collectives.errors import BootstrapError, CollectiveError, CollectiveTimeoutError
from collectives.launchers.files import Files

_NUMBER = re.compile(r"[A-Za-z0-9]{1,64}")
_SIZE = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True)
class Hello:
    """The number that a rank has drawn, and of how many ranks it is; 0: it does not say."""

    number: str
    size: int = 0

    def __str__(self) -> str:
        return f"{self.number} {self.size}" if self.size else self.number


def hello_of(files: Files, name: str) -> Hello | None:
    """Return what a rank says of itself, None where nothing is there.

    Raises BootstrapError where the file is damaged, as all here do.
    """
    data = files.read(name)
    if not data:
        return None
    number, _, size = data.decode("ascii", "replace").partition(" ")
    if not _NUMBER.fullmatch(number) or not (_SIZE.fullmatch(size) or not size):
        raise damaged(files, name)
    return Hello(number, int(size or 0))


def session_of(files: Files, name: str) -> dict[str, Any]:
    """Return what rank 0 says: its number, "name", and those it has read; {} where nothing is."""
    said = _object(files, name)
    if said is None:
        return {}
    numbers, missing = said.get("numbers"), said.get("missing", [])
    well = isinstance(numbers, dict) and isinstance(missing, list)
    if not well or not _NUMBER.fullmatch(str(said.get("name"))):
        raise damaged(files, name)
    return said


def note_of(files: Files, name: str) -> CollectiveError | None:
    """Return what to raise since a rank has left, None where nothing is there."""
    said = _object(files, name)
    if said is None:
        return None
    if not isinstance(said.get("rank"), int):
        raise damaged(files, name)
    kind = CollectiveTimeoutError if said.get("late") is True else BootstrapError
    return kind(str(said.get("text")), said["rank"])


def _object(files: Files, name: str) -> dict[str, Any] | None:
    data = files.read(name)
    if data is None:
        return None
    try:
        said = json.loads(data)
    except ValueError as error:
        raise damaged(files, name) from error
    if not isinstance(said, dict):
        raise damaged(files, name)
    return said


def damaged(files: Files, name: str) -> BootstrapError:
    """Return what to raise where a file holds what no rank has written."""
    return BootstrapError(
        f"the file {files.path_of(name)}, by which ranks meet, is damaged: remove it, and start "
        "the job again"
    )
