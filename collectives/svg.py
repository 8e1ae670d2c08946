# SPDX-License-Identifier: Apache-2.0
"""The space-time diagram of a schedule as a self-contained SVG, for light and dark pages alike.

Ranks are rows and time runs to the right. Between two rounds each rank shows a panel of cells
(panel.py): the higher a cell is filled, the more of it the rank holds. Each arrow is a message in
the colours of what it carries, with its numbers; a plus marks a fold at the receiver.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from collectives.catalogue import ROOTED, Schedule
from collectives.panel import Panel, panel_of
from collectives.symbolic import Cells, Message, SymbolicRun

Marks = tuple[int, ...]
Point = tuple[float, float]

_INK = "#7d8590"  # reads on white and on near-black
_FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
_LEFT, _TOP, _RIGHT, _BOTTOM = 64.0, 76.0, 24.0, 58.0
_STRIP = 22.0  # height of a panel of one row
_SIGN = 6.5  # radius of the sign of a fold
_LETTER = 5.6  # mean width of a letter of the legend
_CROWDED = 2  # messages per rank and round above which the numbers would hide the arrows


@dataclass(frozen=True)
class _Grid:
    """Where things lie, in user units."""

    p: int
    rounds: tuple[int, ...]  # their labels
    width: float  # of a panel
    height: float
    gap: float
    row: float
    least: float  # width of the page

    def left(self, boundary: int) -> float:
        """Left edge of the panels after ``boundary`` rounds."""
        return _LEFT + boundary * (self.width + self.gap)

    def right(self, boundary: int) -> float:
        return self.left(boundary) + self.width

    def y(self, rank: int) -> float:
        return _TOP + self.height / 2 + rank * self.row

    @property
    def page_width(self) -> float:
        return max(self.right(len(self.rounds)) + _RIGHT, self.least)

    @property
    def bottom(self) -> float:
        return self.y(self.p - 1) + self.height / 2


def space_time(schedule: Schedule, run: SymbolicRun) -> str:
    """Return the drawing."""
    panel = panel_of(schedule)
    grid = _grid(schedule.p, run.rounds, panel)
    colours = [_colour(hue, panel.hues) for hue in range(panel.hues)]
    sets = sorted({marks for m in run.messages if len(marks := panel.marks(m)) > 1})
    paints = {together: f"url(#m{i})" for i, together in enumerate(sets)}
    parts = [
        *_head(schedule, grid),
        "<defs>",
        *_gradients(sets, colours),
        *_patterns(panel, grid, colours),
        "</defs>",
        *_frame(schedule, grid),
        *_arrows(run.messages, grid, panel, colours, paints),
        *_panels(run, grid, panel, colours),
        *_legend(run, grid, panel, colours),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(p: int, rounds: tuple[int, ...], panel: Panel) -> _Grid:
    widest = 13.0 if panel.columns > 1 else 18.0
    cell = min(max(72.0 / panel.columns, 4.0), widest)
    height = _STRIP
    if panel.rows > 1:
        cell = min(max(54.0 / panel.columns, 3.0), 9.0)
        height = max(panel.rows * cell, _STRIP)
    return _Grid(
        p=p,
        rounds=rounds,
        width=cell * panel.columns,
        height=height,
        gap=84.0 + 3.5 * p,
        row=height + (22.0 if p <= 8 else 14.0),
        least=max(540.0, _LEFT + _LETTER * len(panel.words) + 240.0),  # for the legend
    )


def _head(schedule: Schedule, grid: _Grid) -> list[str]:
    width, height = grid.page_width, grid.bottom + _BOTTOM
    title = escape(f"{schedule.kind} {schedule.name}, {schedule.p} ranks")
    pieces = "block" if schedule.kind == "alltoall" else "chunk"
    facts = [f"p = {schedule.p}", _plural(schedule.chunks, pieces)]
    facts.append(_plural(len(grid.rounds), "round"))
    if schedule.kind in ROOTED:
        facts.insert(1, f"root {schedule.root}")
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{_FONT}" '
        f'font-size="11" fill="{_INK}">',
        f"<title>{title}</title>",
        f"<desc>{title}: ranks are rows, time runs to the right, arrows are messages.</desc>",
        f'<text x="16" y="28" font-size="16"><tspan font-weight="600">{escape(schedule.kind)}'
        f'</tspan> <tspan>{escape(schedule.name)}</tspan><tspan dx="14" font-size="11">'
        f"{' · '.join(facts)}</tspan></text>",
    ]


def _gradients(sets: Iterable[Marks], colours: list[str]) -> list[str]:
    """Return one paint for each set of colours that travel together."""
    lines = []
    for i, marks in enumerate(sets):
        stops = "".join(
            f'<stop offset="{k / (len(marks) - 1):.3g}" stop-color="{colours[mark]}"/>'
            for k, mark in enumerate(marks)
        )
        lines.append(f'<linearGradient id="m{i}" x2="0" y2="1">{stops}</linearGradient>')
    return lines


def _frame(schedule: Schedule, grid: _Grid) -> list[str]:
    """Return names of ranks and rounds, and the ranks' lines of time."""
    lines = []
    for number, label in enumerate(grid.rounds):
        x, width = grid.right(number), grid.gap
        if number % 2 == 0:
            lines.append(
                f'<rect x="{x:.1f}" y="{_TOP - 12:.1f}" width="{width:.1f}" '
                f'height="{grid.bottom - _TOP + 24:.1f}" rx="6" fill="{_INK}" opacity=".07"/>'
            )
        lines.append(
            f'<text x="{x + width / 2:.1f}" y="{_TOP - 20:.1f}" text-anchor="middle">'
            f"round {label}</text>"
        )
    for rank in range(grid.p):
        y = grid.y(rank)
        weight = ' font-weight="700"' if _is_root(schedule, rank) else ""
        lines.append(
            f'<text x="{_LEFT - 12:.1f}" y="{y + 4:.1f}" text-anchor="end"{weight}>'
            f"rank {rank}</text>"
        )
        between = "".join(
            f"M{grid.right(number):.1f} {y:.1f}h{grid.gap:.1f}"
            for number in range(len(grid.rounds))
        )
        lines.append(f'<path d="{between}" stroke="{_INK}" stroke-opacity=".3"/>')
    return lines


def _is_root(schedule: Schedule, rank: int) -> bool:
    return schedule.kind in ROOTED and rank == schedule.root


def _panels(run: SymbolicRun, grid: _Grid, panel: Panel, colours: list[str]) -> list[str]:
    lines = []
    for boundary, ranks in enumerate(run.held):
        for rank, cells in enumerate(ranks):
            x, y = grid.left(boundary), grid.y(rank) - grid.height / 2
            lines.append(f'<g transform="translate({x:.1f} {y:.1f})">')
            lines += _panel(panel, cells, grid, colours)
            lines.append("</g>")
    return lines


def _panel(panel: Panel, cells: Cells, grid: _Grid, colours: list[str]) -> list[str]:
    size = grid.width / panel.columns, grid.height / panel.rows
    shares = panel.shares(cells)
    whole = f'<rect width="{grid.width:.1f}" height="{grid.height:.1f}" fill="url(#%s)"/>'
    if len(shares) == panel.rows * panel.columns and min(shares.values()) >= 1:
        return [whole % "full"]
    return [
        whole % "empty",
        *(
            _filled(column * size[0], row * size[1], size, share, colours[panel.hue(row, column)])
            for (row, column), share in sorted(shares.items())
            if share > 0
        ),
    ]


def _patterns(panel: Panel, grid: _Grid, colours: list[str]) -> list[str]:
    """Return the two panels that need not be drawn cell by cell: nothing there, and all there."""
    size = grid.width / panel.columns, grid.height / panel.rows
    lines = []
    for name, opacity in (("empty", ' opacity=".2"'), ("full", "")):
        cells = (
            _filled(column * size[0], row * size[1], size, 1.0, colours[panel.hue(row, column)])
            for row in range(panel.rows)
            for column in range(panel.columns)
        )
        # A little larger than the panel: rounded up, it must not begin anew at the edge.
        lines += [
            f'<pattern id="{name}" width="{grid.width + 1:.1f}" height="{grid.height + 1:.1f}" '
            f'patternUnits="userSpaceOnUse"><g{opacity}>',
            *cells,
            "</g></pattern>",
        ]
    return lines


def _inside(size: Point) -> Point:
    """Return what is drawn of a cell: a little less than its size, to set it off from the next."""
    width, height = (side - (1.5 if side > 6 else 0.8) for side in size)
    return width, size[1] if size[1] == _STRIP else height


def _filled(x: float, y: float, size: Point, share: float, colour: str, more: str = "") -> str:
    """Return a cell, filled from below."""
    width, height = _inside(size)
    filled = height * min(share, 1.0)
    top = y + height - filled
    at = f' y="{top:.1f}"' if top else ""
    return (
        f'<rect x="{x:.1f}"{at} width="{width:.1f}" height="{filled:.4g}" rx="1.5" '
        f'fill="{colour}"{more}/>'
    )


def _arrows(
    messages: Iterable[Message],
    grid: _Grid,
    panel: Panel,
    colours: list[str],
    paints: dict[Marks, str],
) -> list[str]:
    """Return all arrows, and above them their signs and numbers."""
    messages = list(messages)
    numbers = {label: number for number, label in enumerate(grid.rounds)}
    per_round = Counter(m.round for m in messages)
    fan_out = Counter((m.round, m.sender) for m in messages)
    fan_in = Counter((m.round, m.receiver) for m in messages)
    lines: list[str] = []
    signs: list[str] = []
    for m in messages:
        crowded = per_round[m.round] > _CROWDED * grid.p
        curve = _curve(m, numbers[m.round], grid)
        marks = panel.marks(m)
        colour = colours[marks[len(marks) // 2]]
        style = 'stroke-width="1.2" opacity=".8"' if crowded else 'stroke-width="2"'
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = curve
        lines.append(
            f'<path d="M{x0:.1f} {y0:.1f}C{x1:.1f} {y1:.1f} {x2:.1f} {y2:.1f} {x3:.1f} {y3:.1f}" '
            f'fill="none" stroke="{paints.get(marks, colour)}" {style}/>'
        )
        signs += _fold_sign(x3 + _SIGN, y3, colour) if m.folds else _head_sign(x3, y3, colour)
        words = panel.label(m)
        if words and not crowded:
            alone = fan_out[m.round, m.sender] == 1, fan_in[m.round, m.receiver] == 1
            signs += _numbers(words, curve, _place(curve, *alone), colour)
    return lines + signs


def _curve(m: Message, number: int, grid: _Grid) -> list[Point]:
    """Return the Bezier curve from the sender's panel to the receiver's next one."""
    x0, y0 = grid.right(number) + 2, grid.y(m.sender)
    x3, y3 = grid.left(number + 1) - (2 * _SIGN + 3 if m.folds else 8), grid.y(m.receiver)
    bend = (x3 - x0) * 0.45
    return [(x0, y0), (x0 + bend, y0), (x3 - bend, y3), (x3, y3)]


def _fold_sign(x: float, y: float, colour: str) -> list[str]:
    arm = _SIGN - 2.7
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_SIGN}" fill="{colour}"/>',
        f'<path d="M{x - arm:.1f} {y:.1f}h{2 * arm:.1f}M{x:.1f} {y - arm:.1f}v{2 * arm:.1f}" '
        'stroke="#fff" stroke-width="1.8" stroke-linecap="round"/>',
    ]


def _head_sign(x: float, y: float, colour: str) -> list[str]:
    return [f'<path d="M{x + 6:.1f} {y:.1f}l-8 -4.5v9z" fill="{colour}"/>']


def _place(curve: list[Point], alone_out: bool, alone_in: bool) -> Point:
    """Return where on a curve its label meets no other: by the end where it is the only arrow."""
    # So near the end that it has hardly left the row.
    height = abs(curve[3][1] - curve[0][1])
    t = min(0.13, math.sqrt(2.5 / max(height, 1.0)))
    if not alone_out:
        t = 1 - t if alone_in else 0.3
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    x = sum(w * px for w, (px, _) in zip(weights, curve, strict=True))
    y = sum(w * py for w, (_, py) in zip(weights, curve, strict=True))
    return x, y


def _numbers(words: str, curve: list[Point], place: Point, colour: str) -> list[str]:
    """Return the label that says what a message carries, off the panels at both ends."""
    x, y = place
    width = 6.2 * len(words) + 8
    x = min(max(x, curve[0][0] + width / 2), curve[3][0] - width / 2 - 2)
    return [
        f'<rect x="{x - width / 2:.1f}" y="{y - 7.5:.1f}" width="{width:.1f}" height="15" rx="4" '
        f'fill="{colour}"/>',
        f'<text x="{x:.1f}" y="{y + 3.7:.1f}" text-anchor="middle" font-size="10.5" '
        f'font-weight="600" fill="#fff">{words}</text>',
    ]


def _legend(run: SymbolicRun, grid: _Grid, panel: Panel, colours: list[str]) -> list[str]:
    """Explain the signs that occur, on one line below."""
    y, x, colour = grid.bottom + 38, _LEFT, colours[len(colours) // 2]
    cell = [
        f'<g transform="translate(0 {-_STRIP / 2})">',
        _filled(0, 0, (13, _STRIP), 1.0, colours[0], ' opacity=".2"'),
        _filled(0, 0, (13, _STRIP), 0.6, colours[0]),
        "</g>",
    ]
    entries = [(cell, 13.0, panel.words)]
    if any(m.folds for m in run.messages):
        entries.append((_line(colour) + _fold_sign(14 + _SIGN, 0, colour), 27.0, "folds"))
    if not all(m.folds for m in run.messages):
        entries.append((_line(colour) + _head_sign(18, 0, colour), 24.0, "overwrites"))
    lines = []
    for drawn, width, words in entries:
        lines += [
            f'<g transform="translate({x:.1f} {y:.1f})">',
            *drawn,
            f'<text x="{width + 7:.1f}" y="4">{words}</text></g>',
        ]
        x += width + 7 + _LETTER * len(words) + 22
    return lines


def _line(colour: str) -> list[str]:
    return [f'<path d="M0 0h18" stroke="{colour}" stroke-width="2"/>']


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _colour(chunk: int, chunks: int) -> str:
    """Return a hue of its own for each chunk, all equally bright (OKLCH, see Ottosson 2020)."""
    hue = math.radians(250.0 + 330.0 * chunk / max(chunks, 1))
    lightness, chroma = 0.66, 0.135
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{_srgb(min(max(c, 0.0), 1.0)):02x}" for c in linear)


def _srgb(linear: float) -> int:
    curved = 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
    return round(255 * curved)
