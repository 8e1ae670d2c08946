# SPDX-License-Identifier: Apache-2.0
"""How long a test waits for what is promised within so many seconds."""

from __future__ import annotations

import os


def promised(seconds: float) -> float:
    """Return so many seconds, times how much more the machine runs than it has cores for.

    Who is told has to get a core first. A promise that is broken takes its whole time-out.
    """
    return seconds * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))
