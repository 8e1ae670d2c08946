# SPDX-License-Identifier: Apache-2.0
"""Seconds on a command line: click's ranges of floats let NaN through, and infinity."""

from __future__ import annotations

import math
from typing import Any

import click


class Seconds(click.FloatRange):
    """A finite number of seconds, not below a least one."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read it; what is no finite number is refused with a sentence."""
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return seconds


def format_seconds(seconds: float) -> str:
    """Return "12.3 us", "4.56 ms" or "1.2 s"."""
    for unit, least in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= least:
            return f"{seconds / least:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
