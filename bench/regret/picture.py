# SPDX-License-Identifier: Apache-2.0
"""The panels of a collective as one PNG: curves above, paths beneath."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.regret.panels import COLOURS, HUES, LINES, TITLES, Panel, algorithms
from collectives.cli.sizes import format_size

_MARKS = {"tuned": "o", "rule": "s", "model": "D"}
_APART = 1.06  # of the points of one size, as a factor
_COLUMNS = 2
_LETTER = 0.0105  # mean width of one, as a share of a path


def picture(of_kind: Sequence[Panel], path: Path) -> None:
    """Draw the panels of one collective."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(of_kind))
    rows = -(-len(of_kind) // columns)
    figure = Figure(figsize=(8.4 * columns, 4.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    names = algorithms(of_kind)
    for part, panel in zip(figure.subfigures(rows, columns, squeeze=False).flat, of_kind):  # noqa: B905
        curves, paths = part.subplots(2, 1, sharex=True, height_ratios=(3, 1.5))
        _curves(curves, panel)
        _paths(paths, panel, names)
        curves.set_title(f"{panel.kind}, {panel.team.title}", fontsize="medium", loc="left")
    figure.savefig(path, dpi=110)


def _curves(axes: Any, panel: Panel) -> None:
    for ratio, words in LINES:
        axes.axhline(ratio, color="#b08800", linewidth=0.8, linestyle=(0, (5, 4)))
        axes.text(
            1.005, ratio, words, transform=axes.get_yaxis_transform(), color="#8a6a00",
            fontsize=7, va="center",
        )  # fmt: skip
    axes.axhline(1.0, color="#59636e", linewidth=1)
    for number, way in enumerate(panel.ways):
        aside = _APART ** (2 * number - len(panel.ways) + 1)
        _curve(axes, panel, way, aside)
    axes.set_yscale("log")
    axes.set_ylim(panel.low, panel.high)
    axes.set_yticks(panel.ticks(), [f"{tick:g}" for tick in panel.ticks()])
    axes.minorticks_off()
    axes.set_ylabel("regret, 95 % interval")
    axes.legend(frameon=False, fontsize="small", loc="upper left", ncols=3)
    axes.grid(visible=True, axis="y", color="#e4e7eb", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _curve(axes: Any, panel: Panel, way: str, aside: float) -> None:
    rows = [row for row in panel.rows if way in row.ways]
    colour = COLOURS[way]
    axes.plot(
        [row.nbytes * aside for row in rows], [row.ways[way].ratio for row in rows],
        color=colour, linewidth=1.4, alpha=0.75, label=f"by {TITLES[way]}",
    )  # fmt: skip
    for row in rows:
        one, x = row.ways[way], row.nbytes * aside
        faint = 0.45 if row.undecided else 1.0
        axes.plot([x, x], [one.low, one.high], color=colour, linewidth=1.1, alpha=faint)
        axes.plot(
            [x], [one.ratio], marker="x" if row.undecided else _MARKS[way], markersize=4.5,
            color=colour, markerfacecolor="white" if row.held_out else colour, alpha=faint,
        )  # fmt: skip


def _paths(axes: Any, panel: Panel, names: Sequence[str]) -> None:
    from matplotlib.colors import hsv_to_rgb
    from matplotlib.ticker import NullLocator

    lanes = ["best", *panel.ways]
    axes.set_xscale("log", base=2)
    axes.set_xlim(panel.least, panel.most)
    axes.set_ylim(len(lanes) - 0.45, -0.55)
    axes.set_yticks(range(len(lanes)), [TITLES[way] for way in lanes])
    axes.set_xticks(panel.sizes(), [format_size(size) for size in panel.sizes()])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("size of the vector (bytes)")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    place = axes.transScale + axes.transLimits  # data -> shares of the axes
    for number, way in enumerate(lanes):
        for block in panel.path(way):
            hue = HUES[names.index(block.algorithm) % len(HUES)] / 360
            axes.barh(
                number, block.end - block.begin, left=block.begin, height=0.86,
                color=hsv_to_rgb((hue, 0.22, 0.95)), edgecolor="white", linewidth=1,
            )  # fmt: skip
            begin, end = (float(place.transform((edge, 0))[0]) for edge in (block.begin, block.end))
            middle = (block.begin * block.end) ** 0.5
            name, parameters = block.lines((end - begin) / _LETTER)
            for words, aside, colour in ((name, -0.2, "#1b1f24"), (parameters, 0.22, "#59636e")):
                axes.text(
                    middle, number + aside, words, ha="center", va="center", fontsize=6.5,
                    color=colour,
                )  # fmt: skip
