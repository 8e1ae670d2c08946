# SPDX-License-Identifier: Apache-2.0
"""Rows as text: nccl-tests' columns, one fixed-width line per row, so that they can be live."""

from __future__ import annotations

import math
from collections.abc import Sequence

from collectives.measure import Row

_LAYOUT = "{:>11} {:>10} {:>8} {:>4} {:>4}  {:<20} {:>10} {:>10} {:>8} {:>8} {:>6}"
_HEADS = ("size", "count", "type", "op", "root", "algorithm", "p50", "p99", "algbw", "busbw")
_UNITS = ("bytes", "elements", "", "", "", "", "us", "us", "GB/s", "GB/s")


def header() -> str:
    """Return the two lines above the rows: names and units."""
    names = _LAYOUT.format(*_HEADS, "wrong")
    units = _LAYOUT.format(*_UNITS, "")
    return f"{names}\n{units.rstrip()}"


def line(row: Row) -> str:
    """Return one row."""
    name = row.algorithm if row.mode == "auto" else f"{row.algorithm} {row.mode}"
    what = (row.size, row.count, row.dtype, row.op, row.root, name)
    if row.refused is not None:
        return _LAYOUT.format(*what, "refused", "", "", "", "").rstrip()
    return _LAYOUT.format(
        *what, number(row.p50), number(row.p99), rate(row.algbw), rate(row.busbw), row.wrong
    )


def number(microseconds: float) -> str:
    """Three significant digits without an exponent."""
    if math.isnan(microseconds):
        return "-"
    decimals = 2 if microseconds < 10 else 1 if microseconds < 1000 else 0
    return f"{microseconds:.{decimals}f}"


def rate(gigabytes: float) -> str:
    """GB/s with the digits that small messages need."""
    if math.isnan(gigabytes):
        return "-"
    return f"{gigabytes:.4f}" if gigabytes < 0.1 else f"{gigabytes:.2f}"


def fastest(rows: Sequence[Row]) -> Row | None:
    """Return the row with the smallest median among those with right results."""
    valid = [row for row in rows if row.refused is None and row.wrong == 0]
    return min(valid, key=lambda row: row.p50, default=None)


def refusals(rows: Sequence[Row]) -> list[str]:
    """Return each reason for a refusal once, as sentences with the algorithm's name."""
    reasons = {f"{row.algorithm}: {row.refused}": None for row in rows if row.refused is not None}
    return list(reasons)
