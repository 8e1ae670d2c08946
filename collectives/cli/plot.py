# SPDX-License-Identifier: Apache-2.0
"""Rows as a picture: time and bus bandwidth over size, one line per algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collectives.cli.sizes import format_size
from collectives.measure import Row

# Okabe and Ito's colours: told apart by all kinds of colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKS = "osD^vPX*"


def require() -> None:
    """Fail early and in words where matplotlib is missing. Raises ``ValueError``."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        raise ValueError(
            "--plot needs matplotlib; install it with: pip install matplotlib "
            "(or, with the package itself: pip install 'pycollectives[plot]')"
        ) from None


def check_path(path: Path) -> None:
    """Refuse a file that could not be written at the end. Raises ``ValueError``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in known:
        raise ValueError(f"cannot plot to {path}; its name must end in one of {', '.join(known)}")
    if not path.parent.is_dir():
        raise ValueError(f"cannot plot to {path}; the folder {path.parent} does not exist")


def plot(rows: Sequence[Row], path: Path, title: str) -> None:
    """Draw the rows to `path`; its suffix says the format (png, svg, pdf)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines: dict[str, list[Row]] = {}
    for row in rows:
        if row.refused is None:
            lines.setdefault(row.algorithm, []).append(row)
    bandwidth = any(row.busbw == row.busbw for row in rows)  # a barrier carries nothing
    figure = Figure(figsize=(11 if bandwidth else 6, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2 if bandwidth else 1, squeeze=False)[0]
    for index, (name, points) in enumerate(lines.items()):
        style = {
            "color": _COLOURS[index % len(_COLOURS)],
            "marker": _MARKS[index % len(_MARKS)],
            "markersize": 4,
            "linewidth": 1.4,
            "label": name,
        }
        sizes = [max(row.size, 1) for row in points]
        panels[0].plot(sizes, [row.p50 for row in points], **style)
        if bandwidth:
            panels[1].plot(sizes, [row.busbw for row in points], **style)
    _axes(panels[0], rows, "time of a call, p50 (µs)", logarithmic=True)
    if bandwidth:
        _axes(panels[1], rows, "bus bandwidth (GB/s)", logarithmic=False)
    panels[0].legend(frameon=False, fontsize="small")
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


def _axes(axes: Any, rows: Sequence[Row], label: str, *, logarithmic: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    sizes = sorted({max(row.size, 1) for row in rows})
    axes.set_xscale("log", base=2)
    if logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    step = -(-len(sizes) // 9)
    axes.set_xticks(sizes[::step], [format_size(size) for size in sizes[::step]], rotation=30)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("size (bytes)")
    axes.set_ylabel(label)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
