# SPDX-License-Identifier: Apache-2.0
"""Floors: our native calls of two processes beside the best loop that was written by hand.

A floor of a size is the way of doing the collective by hand that was fastest there, in the same
blocks as our own call: chosen by its median time, near and far apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.table import Table

from bench.limits.judge import where
from bench.record import RESULTS
from collectives.cli.sizes import UNITS, format_size

Block = dict[str, Any]

FLOORS_FILE = RESULTS / "floors.json"
SIZES = (8, 4 * UNITS["K"], 64 * UNITS["K"], UNITS["M"], 8 * UNITS["M"], 32 * UNITS["M"])
OF_FLOOR = 0.85  # the share of a floor that is asked


@dataclass(frozen=True)
class Floor:
    """A collective of `nbytes` in one placement. Times in ns; `share` is floor over ours."""

    kind: str
    nbytes: int
    placement: str
    blocks: int
    ours_ns: float
    floor_ns: float
    by: str
    share: float
    worst: float
    best: float

    @property
    def met(self) -> bool:
        """Whether ours reaches what is asked of it."""
        return self.share >= OF_FLOOR

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the digits that mean something."""
        digits = {"ours_ns": 1, "floor_ns": 1, "share": 3, "worst": 3, "best": 3}
        rounded = {name: round(getattr(self, name), n) for name, n in digits.items()}
        return asdict(self) | rounded | {"met": self.met}


def judge_floors(blocks: Sequence[Block]) -> list[Floor]:
    """Join the blocks of each collective, size and placement; a block that saw both is left out."""
    groups: dict[tuple[str, int, str], list[Block]] = {}
    for block in blocks:
        groups.setdefault((block["kind"], block["bytes"], where(block)), []).append(block)
    return [
        _floor(*key, groups[key])
        for key in sorted(groups, key=lambda key: (key[0], key[1], key[2] == "far"))
        if key[2] in ("near", "far")
    ]


def net(block: Block, time: float) -> float:
    """Return the nanoseconds of a call in a block without those of a call of nothing."""
    return max(time - float(block["empty_ns"]), 1.0)  # the clock itself is nobody's


def _floor(kind: str, nbytes: int, place: str, group: Sequence[Block]) -> Floor:
    times = {by: median(net(b, b["hands"][by]) for b in group) for by in group[0]["hands"]}
    by = min(times, key=times.__getitem__)
    shares = [net(block, block["hands"][by]) / net(block, block["ns"]) for block in group]
    return Floor(
        kind=kind,
        nbytes=nbytes,
        placement=place,
        blocks=len(group),
        ours_ns=median(net(block, block["ns"]) for block in group),
        floor_ns=times[by],
        by=by,
        share=median(shares),
        worst=min(shares),
        best=max(shares),
    )


def table_of_floors(floors: Sequence[Floor]) -> Table:
    """Return one line per collective, size and placement."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("collective", "bytes", "placement"):
        table.add_column(head)
    for head in ("blocks", "ours us", "floor us", "share", "spread"):
        table.add_column(head, justify="right")
    table.add_column("by hand")
    table.add_column("")
    for row in floors:
        table.add_row(
            row.kind,
            format_size(row.nbytes),
            row.placement,
            str(row.blocks),
            f"{row.ours_ns / 1e3:.3g}",
            f"{row.floor_ns / 1e3:.3g}",
            f"{row.share:.2f}",
            f"{row.worst:.2f}-{row.best:.2f}",
            row.by,
            "[green]met" if row.met else "[red]missed",
        )
    return table
