# SPDX-License-Identifier: Apache-2.0
"""Goals as shares of the machine's limits, judged block by block, near and far apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from bench.limits.goals import Block, Goal, goals_of
from collectives.measure import placement


@dataclass(frozen=True)
class Judged:
    """One row and goal in one placement. Times in ns; `share` is measured over allowed time.

    Where ranks share cores, `yield_ns` and `switch_ns` are a sched_yield that finds nobody else
    and one that lets another process run; elsewhere 0.
    """

    row: str
    placement: str
    blocks: int
    least_blocks: int
    goal: str
    measured_ns: float
    allowed_ns: float
    share: float
    best: float
    worst: float
    yield_ns: float
    switch_ns: float

    @property
    def met(self) -> bool:
        """Whether the median block kept the goal."""
        return self.share <= 1

    @property
    def enough(self) -> bool:
        """Whether there are as many blocks as the goal speaks of."""
        return self.blocks >= self.least_blocks

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the digits that mean something."""
        digits = {"measured_ns": 1, "allowed_ns": 1, "share": 3, "best": 3, "worst": 3}
        digits |= {"yield_ns": 1, "switch_ns": 1}
        rounded = {name: round(getattr(self, name), n) for name, n in digits.items()}
        return asdict(self) | rounded | {"met": self.met, "enough": self.enough}


def where(block: Block) -> str:
    """Return the placement that the probes around a block saw."""
    return placement([block["line_before_ns"], block["line_after_ns"]]) or ""


SAME_KERNELS = "same kernels"  # as the plan: the loop by hand of interpreter.cc


def from_pairs(pairs: Sequence[Block]) -> list[Block]:
    """Turn pairs of interpreted plan and loops by hand to blocks, each with the best loop's time.

    The best is that of the least median over all pairs of a row in one placement: the least of
    each pair would be a matter of luck.
    """
    groups: dict[tuple[str, str], list[Block]] = {}
    for pair in pairs:
        groups.setdefault((pair["row"], where(pair)), []).append(pair)
    made = []
    for group in groups.values():
        loops = [{**pair["loops_ns"], SAME_KERNELS: pair["hand_ns"]} for pair in group]
        best = _best_of(loops)
        for pair, times in zip(group, loops, strict=True):
            block = pair | {"row": f"plan: {pair['row']}", "ns": pair["plan_ns"], "best": best}
            made.append(block | {"hand_ns": times[best]})
    return made


def _best_of(loops: Sequence[dict[str, float]]) -> str:
    return min(loops[0], key=lambda name: median(times[name] for times in loops))


def judge(blocks: Sequence[Block]) -> list[Judged]:
    """Join the blocks of each row and placement, and hold them against every goal of the row.

    A block that saw both placements is left out.
    """
    groups: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        groups.setdefault((block["row"], where(block)), []).append(block)
    rows = {block["row"]: block for block in blocks}
    return [
        _judged(row, side, goal, groups[row, side])
        for row, one in rows.items()
        for goal in goals_of(one)
        for side in ("near", "far")
        if (row, side) in groups
    ]


def _judged(row: str, side: str, goal: Goal, group: Sequence[Block]) -> Judged:
    shares = [block["ns"] / goal.allowed_ns(block) for block in group]
    return Judged(
        row=row,
        placement=side,
        blocks=len(group),
        least_blocks=goal.blocks,
        goal=goal.words,
        measured_ns=median(block["ns"] for block in group),
        allowed_ns=median(goal.allowed_ns(block) for block in group),
        share=median(shares),
        best=min(shares),
        worst=max(shares),
        yield_ns=median(block.get("yield_ns", 0.0) for block in group),
        switch_ns=median(block.get("switch_ns", 0.0) for block in group),
    )
