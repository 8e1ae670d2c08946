# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.hosts.all``: all measurements between hosts, one after the other.

Options go to each of them: --strict, --rounds N.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.record import ROOT


@dataclass(frozen=True)
class Part:
    """A program, what it shows, and the minutes that it takes on two quiet cores."""

    module: str
    shows: str
    minutes: int


PARTS = (
    Part("bench.hosts", "collectives beside Gloo and MPICH", 12),
    Part("bench.hosts.levels", "hosts of several ranks beside flat algorithms", 4),
    Part("bench.hosts.loopback", "loopback TCP beside a bare socket", 1),
    Part("bench.hosts.start", "how long a job takes to begin", 4),
    Part("bench.hosts.hiding", "transfers behind NumPy", 3),
    Part("bench.hosts.shrink", "survivors of a killed rank", 3),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them; return the largest of their codes. A Ctrl-C ends them all."""
    options = sys.argv[1:] if arguments is None else arguments
    worst = 0
    for number, part in enumerate(PARTS, 1):
        say(f"{number} of {len(PARTS)}: {part.module}, {part.shows}: about {part.minutes} min")
        begin = time.monotonic()
        try:
            code = subprocess.run(
                [sys.executable, "-m", part.module, *options], cwd=ROOT
            ).returncode
        except KeyboardInterrupt:
            return 130
        say(f"{part.module} took {duration(time.monotonic() - begin)}, exit code {code}")
        worst = max(worst, abs(code))
    return worst


def duration(seconds: float) -> str:
    """Write a time as people say it."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def say(sentence: str) -> None:
    """Print a line between the tables of the parts."""
    print(f"== {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
