# SPDX-License-Identifier: Apache-2.0
"""What coll_kernels has measured, as ratios within a round, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from collectives.intervals import of_median

MERGE = 3.0  # times a scalar merge without branches
TOP_K, TOP_K_SHARE = 4.0, 0.01  # reads of the vector, of 1 %
SETS = ("avx512", "avx2", "portable")  # the best of the machine first

Block = dict[str, Any]
Cell = tuple[str, int, float]  # name, entries, density


@dataclass(frozen=True)
class Figure:
    """A ratio: its median over rounds and a 95 % interval of that; `least`, `most`: of all."""

    what: str
    row: str
    entries: int
    density: float
    rounds: int
    median: float
    low: float
    high: float
    least: float
    most: float
    goal: str = ""
    met: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the digits that mean something; unknown bounds are null."""
        numbers = ("median", "low", "high", "least", "most")
        found = {name: getattr(self, name) for name in numbers}
        rounded = {n: round(v, 3) if np.isfinite(v) else None for n, v in found.items()}
        return asdict(self) | rounded


def figures(blocks: Sequence[Block]) -> list[Figure]:
    """Return all ratios, row by row."""
    times: dict[Cell, dict[str, dict[int, float]]] = {}
    for block in blocks:
        cell = (block["row"], block["entries"], block["density"])
        times.setdefault(cell, {}).setdefault(block["way"], {})[block["round"]] = block["ns"]
    return [figure for cell, ways in times.items() for figure in _of_cell(cell, ways)]


def rates(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return the median nanoseconds for each entry, of each way."""
    times: dict[tuple[Cell, str], list[float]] = {}
    for block in blocks:
        cell = (block["row"], block["entries"], block["density"])
        times.setdefault((cell, block["way"]), []).append(block["ns"] / block["entries"])
    return [
        {"row": name, "entries": entries, "density": density, "way": way,
         "ns_per_entry": round(float(np.median(found)), 4)}
        for ((name, entries, density), way), found in times.items()
    ]  # fmt: skip


def _of_cell(cell: Cell, ways: dict[str, dict[int, float]]) -> list[Figure]:
    name, _, density = cell
    present = [way for way in SETS if way in ways]
    if name == "merge":
        found = [_ratio(cell, ways, "scalar", way, f"{way} merge, times as fast as scalar")
                 for way in present]  # fmt: skip
        found[0] = _judged(found[0], MERGE, most=False)
        return [*found, _ratio(cell, ways, "memcpy", present[0], "share of memcpy's rate")]
    if name.startswith("QSGD"):
        return [
            _ratio(cell, ways, "memcpy", way, f"{way}, share of memcpy's rate")
            for way in ("quantise", "dequantise")
        ]
    if name == "scatter-add":
        return [_ratio(cell, ways, "memcpy", "add_to", "share of memcpy's rate")]
    if name == "extract":
        return [
            _ratio(cell, ways, present[0], "read", "times one read of the vector"),
            _ratio(cell, ways, "portable", present[0], "times as fast as one by one"),
        ]
    if name == "top-k":
        best = _ratio(cell, ways, present[0], "read", "times one read of the vector")
        above = _ratio(cell, ways, "above", "read", "by a known threshold, times one read")
        return [_judged(best, TOP_K, most=True) if density == TOP_K_SHARE else best, above]
    return [
        _ratio(cell, ways, "merges", "chosen", "times as fast as one merge after the other"),
        _ratio(cell, ways, "memcpy", "chosen", "share of memcpy's rate"),
    ]


def _ratio(
    cell: Cell, ways: dict[str, dict[int, float]], above: str, below: str, what: str
) -> Figure:
    """Of times, within each round."""
    rounds = sorted(ways[above].keys() & ways[below].keys())
    values = np.array([ways[above][turn] / ways[below][turn] for turn in rounds])
    low, high = of_median(values)
    return Figure(
        what, *cell, len(rounds), float(np.median(values)), low, high,
        float(values.min()), float(values.max()),
    )  # fmt: skip


def _judged(figure: Figure, bound: float, most: bool) -> Figure:
    """Say whether the median reaches what is asked."""
    met = figure.median <= bound if most else figure.median >= bound
    goal = f"{'<=' if most else '>='} {bound:g}"
    return Figure(**(asdict(figure) | {"goal": goal, "met": met}))
