# SPDX-License-Identifier: Apache-2.0
"""What is measured: problems, the ways of each library, and what came out of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.peers.libraries import OURS
from bench.sparse.supports import Problem

# Ways of ours; the first is what a user gets who asks for nothing.
AUTO = "auto"
FIXED = (
    "ssar_recursive_double",
    "ssar_split_allgather",
    "dsar_split_allgather",
    "circulant",
    "ring",
    "allgather",
    "dense",
)
DENSE_ARRAY = "dense array"
PLANS = ("plan", "plan of all")
MPI_WAYS = ("scipy", "scatter")


@dataclass(frozen=True)
class Entry:
    """A library called in one way."""

    library: str
    way: str

    def __str__(self) -> str:
        return f"{self.library}/{self.way}"


@dataclass
class Record:
    """The seconds of a call by entry and round; bytes that each host sent in one, where counted."""

    problem: Problem
    seconds: dict[Entry, dict[int, float]] = field(default_factory=dict)
    counted: dict[Entry, list[float]] = field(default_factory=dict)
    wrong: dict[Entry, int] = field(default_factory=dict)
    left_out: dict[Entry, str] = field(default_factory=dict)

    def add(self, entry: Entry, turn: int, seconds: float) -> None:
        """Enter a block."""
        self.seconds.setdefault(entry, {})[turn] = seconds

    def time(self, entry: Entry) -> float | None:
        """Return the median over rounds."""
        found = self.seconds.get(entry)
        return median(found.values()) if found else None

    def bytes(self, entry: Entry) -> float | None:
        """Return the median of bytes that the busiest host sent in a call."""
        found = self.counted.get(entry)
        return median(found) if found else None

    def ratios(self, entry: Entry, over: Entry) -> list[float]:
        """Return the time of an entry over that of another, round by round."""
        mine, its = self.seconds.get(entry, {}), self.seconds.get(over, {})
        return [mine[turn] / its[turn] for turn in mine if turn in its]

    def best(self, entries: list[Entry]) -> Entry | None:
        """Return that with the least median."""
        timed = {e: t for e in entries if (t := self.time(e)) is not None}
        return min(timed, key=timed.__getitem__, default=None)

    def of(self, library: str) -> list[Entry]:
        """Return the entries of a library."""
        return [entry for entry in self.seconds if entry.library == library]

    def auto(self) -> Entry:
        """Return what a user gets who asks for nothing."""
        return Entry(OURS, AUTO)

    def json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "problem": vars(self.problem),
            "entries": {
                str(entry): {
                    "median_s": self.time(entry),
                    "bytes": self.bytes(entry),
                    "blocks": {str(turn): s for turn, s in blocks.items()},
                    "wrong": self.wrong.get(entry, 0),
                }
                for entry, blocks in self.seconds.items()
            },
            "left_out": {str(entry): why for entry, why in self.left_out.items()},
        }
