# SPDX-License-Identifier: Apache-2.0
"""The results as a picture: times above, our advantage over the best peer below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.cells import PLACEMENTS, Record
from bench.peers.libraries import LIBRARIES, OURS
from collectives.cli.sizes import format_size

# Okabe and Ito's colours: told apart by all kinds of colour vision.
_COLOURS = {
    "gloo": "#E69F00", "openmpi": "#009E73", "mpich": "#56B4E9", "impi": "#CC79A7",
}  # fmt: skip
_OURS = ("#D55E00", "#0072B2", "#000000")


def plot(records: Sequence[Record], path: Path) -> None:
    """Draw two columns, near and far, per collective, dtype and number of ranks."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups: dict[tuple[str, str, int], list[Record]] = {}
    for record in sorted(records, key=lambda record: record.cell):
        cell = record.cell
        groups.setdefault((cell.kind, cell.dtype, cell.ranks), []).append(record)
    columns = len(groups) * len(PLACEMENTS)
    figure = Figure(figsize=(5.2 * columns, 7.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, columns, squeeze=False, sharex="col")
    for index, ((kind, dtype, ranks), group) in enumerate(groups.items()):
        for offset, place in enumerate(PLACEMENTS):
            column = index * len(PLACEMENTS) + offset
            times, ratios = panels[0][column], panels[1][column]
            _times(times, group, place)
            _ratios(ratios, group, place)
            times.set_title(f"{kind} of {dtype}, {ranks} ranks, {place}")
            sizes = [record.cell.nbytes for record in group]
            _axes(ratios, sizes)
    figure.savefig(path, dpi=150)


def _times(axes: Any, group: Sequence[Record], place: str) -> None:
    """Draw the time of a call of every library in its best way, and of each of our variants."""
    lines: dict[str, dict[int, float]] = {}
    for record in group:
        sheet, nbytes = record.sheets[place], record.cell.nbytes
        for name in sheet.libraries():
            best = sheet.best([name])
            for team in sheet.variants() if name == OURS else [best]:
                time = sheet.time(team) if team is not None else None
                if team is not None and time is not None:
                    label = team.way if name == OURS else LIBRARIES[name].title
                    lines.setdefault(f"ours, {label}" if name == OURS else label, {})[nbytes] = time
    titles = {LIBRARIES[name].title: colour for name, colour in _COLOURS.items()}
    ours = iter(_OURS)
    for label, points in lines.items():
        mine = label not in titles
        axes.plot(
            points.keys(), points.values(), label=label, marker="o", markersize=3.5,
            color=next(ours, "#000000") if mine else titles[label], linewidth=2.2 if mine else 1.2,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylabel("time of a call (µs)")
    if lines:
        axes.legend(frameon=False, fontsize="small")
    _tidy(axes)


def _ratios(axes: Any, group: Sequence[Record], place: str) -> None:
    """Draw best peer over ours with its interval."""
    variants = sorted({v for r in group for v in r.sheets[place].variants()}, key=str)
    for variant, colour in zip(variants, _OURS, strict=False):
        found = [
            (record.cell.nbytes, ratio)
            for record in group
            if (ratio := record.sheets[place].ratio(record.sheets[place].rival(), variant))
        ]
        if found:
            axes.errorbar(
                [nbytes for nbytes, _ in found],
                [ratio.value for _, ratio in found],
                yerr=[
                    [ratio.value - ratio.low for _, ratio in found],
                    [ratio.high - ratio.value for _, ratio in found],
                ],
                marker="o", markersize=3.5, capsize=2, color=colour, label=variant.way,
            )  # fmt: skip
    axes.axhline(1.0, color="#888888", linewidth=0.8)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("best peer over ours, 95 % interval")
    _tidy(axes)


def _axes(axes: Any, sizes: Sequence[int]) -> None:
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log", base=2)
    step = -(-len(sizes) // 8)
    axes.set_xticks(sizes[::step], [format_size(size) for size in sizes[::step]], rotation=30)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("size (bytes)")


def _tidy(axes: Any) -> None:
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
