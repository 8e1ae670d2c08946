# SPDX-License-Identifier: Apache-2.0
"""Where lines of ranks go: standard output and error, by default with the rank before each."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from collectives.standard_output import writing
from collectives.supervise import Printer

_COLOURS = (36, 33, 32, 35, 34, 31)  # of a terminal, taken in turn


def with_prefixes(ranks: int, timestamps: bool) -> tuple[Printer, Printer]:
    """Return what writes lines with their rank before them, in colour on a terminal."""
    begin = time.monotonic() if timestamps else None

    def prefix(stream: TextIO) -> Callable[[int], str]:
        coloured = stream.isatty() and not os.environ.get("NO_COLOR")
        return lambda rank: _prefix(rank, ranks, begin, coloured)

    return _both(prefix)


def without_prefixes() -> tuple[Printer, Printer]:
    """Return what writes lines unchanged."""
    return _both(lambda _: lambda _: "")


def _both(prefix: Callable[[TextIO], Callable[[int], str]]) -> tuple[Printer, Printer]:
    return (
        _printer(sys.stdout, "standard output", prefix(sys.stdout)),
        _printer(sys.stderr, "standard error", prefix(sys.stderr)),
    )


def _prefix(rank: int, ranks: int, begin: float | None, coloured: bool) -> str:
    prefix = f"[{rank:{len(str(ranks - 1))}}]"
    if begin is not None:
        prefix += f" {time.monotonic() - begin:8.3f}"
    if coloured:
        prefix = f"\x1b[{_COLOURS[rank % len(_COLOURS)]}m{prefix}\x1b[0m"
    return prefix + " "


def _printer(stream: TextIO, name: str, prefix: Callable[[int], str]) -> Printer:
    """Return what writes lines, and pieces of them as lines of the rank that they are of.

    The next piece goes on where the last one ended, unless another rank has come in between.
    """
    unfinished: int | None = None  # whose line has not been ended

    def write(rank: int, line: bytes) -> None:
        nonlocal unfinished
        before = b"" if rank == unfinished else prefix(rank).encode()
        if unfinished not in (None, rank):
            before = b"\n" + before
        unfinished = None if line.endswith(b"\n") else rank
        with writing(stream, name):
            stream.buffer.write(before + line)
            stream.buffer.flush()

    return write
