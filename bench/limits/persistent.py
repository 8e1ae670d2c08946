# SPDX-License-Identifier: Apache-2.0
"""Persistent calls from Python beside a call of the same binding that does nothing."""

from __future__ import annotations

from pathlib import Path

from bench.call_cost import COLUMNS, UNIT, Callers
from bench.limits.goals import Block
from bench.limits.program import line_latency

KIND, PERSISTENT = "allreduce", COLUMNS[2]
BURSTS = 20  # of 200 calls, for each figure of a block: the best of them counts, as in call_cost
ROW = "persistent 8 B from Python, 2 processes"


def from_python(path: Path, callers: Callers, count: int) -> list[Block]:
    """Measure ``count`` blocks; ``path`` is that of coll_limits, ``callers`` are two ranks."""
    return [_block(path, callers) for _ in range(count)]


def _block(path: Path, callers: Callers) -> Block:
    before = line_latency(path)
    found = callers.measure(BURSTS, [KIND], [PERSISTENT])
    return {
        "row": ROW,
        "ranks": 2,
        "bytes": 8,
        "ns": found[KIND][PERSISTENT] * 1e9,
        "empty_ns": found[UNIT][""] * 1e9,
        "line_before_ns": before,
        "line_after_ns": line_latency(path),
    }
