# SPDX-License-Identifier: Apache-2.0
"""Versions of NCCL, and the number that the library tells."""

from __future__ import annotations

from typing import NamedTuple

from collectives.errors import InvalidArgumentError


class Version(NamedTuple):
    """A version of NCCL; versions are compared part by part."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def of_code(cls, code: int) -> Version:
        """Return the version of what ``ncclGetVersion`` tells, as 23007 of 2.30.7."""
        # Until 2.8 the major number counted thousands.
        unit = 1000 if code < 10000 else 10000
        return cls(code // unit, code % unit // 100, code % 100)

    @classmethod
    def of_text(cls, text: str) -> Version:
        """Return the version of a text such as ``"2.28"`` or ``"2.28.7"``."""
        parts = text.split(".")
        if len(parts) not in (2, 3) or not all(part.isdecimal() for part in parts):
            raise InvalidArgumentError(
                f"{text!r} is no version of NCCL: give one as 2.28 or 2.28.7"
            )
        return cls(*(int(part) for part in parts))

    @property
    def code(self) -> int:
        """The number that ``ncclGetVersion`` tells of this version."""
        unit = 1000 if (self.major, self.minor) <= (2, 8) else 10000
        return self.major * unit + self.minor * 100 + self.patch

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


OLDEST = Version(2, 18)  # before it configurations and splits were other ones
NEWEST = Version(2, 32, 3)  # the last one whose header this binding was compared with
