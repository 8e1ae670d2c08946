# SPDX-License-Identifier: Apache-2.0
"""Goals as shares of the machine's limits, judged block by block, near and far apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from collectives.measure import placement

Block = dict[str, Any]

COPY_SHARE = 0.15
YIELDS = 100
LINES, EXTRA_NS = 2, 50
HANDS, HAND_NS = 1.1, 5


@dataclass(frozen=True)
class Judged:
    """One row in one placement. Times in ns; `share` is measured time over the time allowed."""

    row: str
    placement: str
    blocks: int
    goal: str
    measured_ns: float
    allowed_ns: float
    share: float
    best: float
    worst: float

    @property
    def met(self) -> bool:
        """Whether the median block kept the goal."""
        return self.share <= 1

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the digits that mean something."""
        digits = {"measured_ns": 1, "allowed_ns": 1, "share": 3, "best": 3, "worst": 3}
        rounded = {name: round(getattr(self, name), n) for name, n in digits.items()}
        return asdict(self) | rounded | {"met": self.met}


def goal(block: Block) -> str:
    """Return the goal of a block's row in words."""
    if "hand_ns" in block:
        return f"<= {HANDS} x by hand + {HAND_NS} ns"
    if block["bytes"] > 8:
        return f">= {COPY_SHARE} x plain copy"
    if block["ranks"] > 2:
        return f"<= {YIELDS} x sched_yield"
    return f"<= {LINES} x line + {EXTRA_NS} ns"


def allowed_ns(block: Block) -> float:
    """Return the time that the goal allows, from the limit probed beside this block."""
    if "hand_ns" in block:
        return float(HANDS * block["hand_ns"] + HAND_NS)
    if block["bytes"] > 8:
        return float(block["bytes"] / (COPY_SHARE * block["copy_gbs"]))
    if block["ranks"] > 2:
        return float(YIELDS * block["yield_ns"])
    line = (block["line_before_ns"] + block["line_after_ns"]) / 2
    return float(LINES * line + EXTRA_NS)


def where(block: Block) -> str:
    """Return the placement that the probes around a block saw."""
    return placement([block["line_before_ns"], block["line_after_ns"]]) or ""


def from_pairs(pairs: Sequence[Block]) -> list[Block]:
    """Turn pairs of interpreted plan and loop by hand to blocks."""
    return [
        pair
        | {
            "row": f"plan: {pair['row']}",
            "ns": pair["plan_ns"],
            "line_before_ns": pair["line_ns"],
            "line_after_ns": pair["line_ns"],
        }
        for pair in pairs
    ]


def judge(blocks: Sequence[Block]) -> list[Judged]:
    """Join the blocks of each row and placement; a block that saw both is left out."""
    groups: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        groups.setdefault((block["row"], where(block)), []).append(block)
    rows = list(dict.fromkeys(block["row"] for block in blocks))
    return [
        _judged(row, side, groups[row, side])
        for row in rows
        for side in ("near", "far")
        if (row, side) in groups
    ]


def _judged(row: str, side: str, group: Sequence[Block]) -> Judged:
    shares = [block["ns"] / allowed_ns(block) for block in group]
    return Judged(
        row=row,
        placement=side,
        blocks=len(group),
        goal=goal(group[0]),
        measured_ns=median(block["ns"] for block in group),
        allowed_ns=median(allowed_ns(block) for block in group),
        share=median(shares),
        best=min(shares),
        worst=max(shares),
    )
