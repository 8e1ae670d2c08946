# SPDX-License-Identifier: Apache-2.0
"""The goals: which blocks each is about, and the time that it allows beside their own limits.

What a machine can do changes from block to block, so a goal never is a figure of nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Block = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """A time asked of the blocks that it ``fits``; ``blocks`` must be there for a verdict."""

    words: str
    fits: Callable[[Block], bool]
    allowed_ns: Callable[[Block], float]
    blocks: int = 1


def by_hand(times: float, blocks: int = 1) -> Goal:
    """Ask of an interpreted plan, beside the best loop that was written by hand."""
    extra_ns = 5
    return Goal(
        f"<= {times} x by hand + {extra_ns} ns",
        lambda block: "hand_ns" in block,
        lambda block: float(times * block["hand_ns"] + extra_ns),
        blocks,
    )


def lines(times: float, extra_ns: int) -> Goal:
    """Ask of a small native call of two ranks, beside the way of a cache line."""
    return Goal(
        f"<= {times} x line + {extra_ns} ns",
        lambda block: _native(block) and block["bytes"] == 8 and block["ranks"] == 2,
        lambda block: times * line_ns(block) + extra_ns,
    )


def yields(times: int, ranks: int) -> Goal:
    """Ask of so many ranks that share cores, beside a sched_yield that finds the core its own."""
    return Goal(
        f"<= {times} x sched_yield",
        lambda block: _native(block) and block["ranks"] == ranks,
        lambda block: float(times * block["yield_ns"]),
    )


def copies(share: float) -> Goal:
    """Ask of a large native call, as a share of the rate of plain copies."""
    return Goal(
        f">= {share} x plain copy",
        lambda block: _native(block) and block["bytes"] > 8,
        lambda block: float(block["bytes"] / (share * block["copy_gbs"])),
    )


def empty_calls(times: float, lines: int) -> Goal:
    """Ask of a call from Python, beside one of the same binding that does nothing."""
    return Goal(
        f"<= {times} x empty call + {lines} x line",
        lambda block: "empty_ns" in block,
        lambda block: times * block["empty_ns"] + lines * line_ns(block),
    )


GOALS = (
    lines(2, extra_ns=50),
    lines(1.3, extra_ns=20),
    yields(100, ranks=4),
    yields(20, ranks=8),
    copies(0.15),
    by_hand(1.1),
    by_hand(1.05, blocks=30),
    empty_calls(1.6, lines=2),
)


def goals_of(block: Block) -> list[Goal]:
    """Return the goals that a block is judged by."""
    return [goal for goal in GOALS if goal.fits(block)]


def line_ns(block: Block) -> float:
    """Return the way of a cache line, as probed before and after a block."""
    return float(block["line_before_ns"] + block["line_after_ns"]) / 2


def _native(block: Block) -> bool:
    return "hand_ns" not in block and "empty_ns" not in block
