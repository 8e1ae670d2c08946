# SPDX-License-Identifier: Apache-2.0
"""Lines of what comes out of a pipe, in memory that is bounded however long a line is."""

from __future__ import annotations

LONGEST = 1 << 20  # bytes that are kept until a line ends


class Lines:
    """Cuts bytes into lines; those that are too long come in pieces.

    A line ends with its line feed. What has none is a piece, and more of its line follows.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        """Nothing has come yet; no more than ``longest`` bytes are ever kept."""
        self._longest = longest
        self._kept = bytearray()
        self._cut = False  # a piece of this line has been given

    def take(self, data: bytes) -> list[bytes]:
        """Return the lines and pieces that are there with ``data``."""
        *ends, rest = data.split(b"\n")
        found = []
        for end in ends:
            found.append(bytes(self._kept) + end + b"\n")
            self._kept.clear()
            self._cut = False
        self._kept += rest
        if len(self._kept) > self._longest:
            found.append(bytes(self._kept))
            self._kept.clear()
            self._cut = True
        return found

    def last(self) -> list[bytes]:
        """Return the line that has not been ended, with a line feed, if there is one."""
        if not self._kept and not self._cut:
            return []
        line = bytes(self._kept) + b"\n"
        self._kept.clear()
        self._cut = False
        return [line]
