# SPDX-License-Identifier: Apache-2.0
"""The space-time diagram of a schedule as a self-contained SVG, for light and dark pages alike.

Ranks are rows and time runs to the right. Between two rounds each rank shows a strip with one cell
per chunk: the higher a cell is filled, the more contributions the rank holds. Each arrow is a
message in the colour of its chunks, with their numbers; a plus marks a fold at the receiver.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from collectives.algorithms import Schedule
from collectives.trace import Message, Trace

Chunks = tuple[int, ...]
Point = tuple[float, float]

_INK = "#7d8590"  # reads on white and on near-black
_FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
_LEFT, _TOP, _RIGHT, _BOTTOM = 64.0, 76.0, 24.0, 58.0
_STRIP = 22.0  # height of a strip
_SIGN = 6.5  # radius of the sign of a fold
_CROWDED = 2  # messages per rank and round above which the numbers would hide the arrows


@dataclass(frozen=True)
class _Grid:
    """Where things lie, in user units."""

    p: int
    rounds: int
    chunks: int
    cell: float
    gap: float
    row: float

    @property
    def strip(self) -> float:
        return self.cell * self.chunks

    def left(self, boundary: int) -> float:
        """Left edge of the strips after ``boundary`` rounds."""
        return _LEFT + boundary * (self.strip + self.gap)

    def right(self, boundary: int) -> float:
        return self.left(boundary) + self.strip

    def y(self, rank: int) -> float:
        return _TOP + _STRIP / 2 + rank * self.row

    @property
    def width(self) -> float:
        return max(self.right(self.rounds) + _RIGHT, 540.0)

    @property
    def bottom(self) -> float:
        return self.y(self.p - 1) + _STRIP / 2


def space_time(schedule: Schedule, trace: Trace) -> str:
    """Return the drawing."""
    p, chunks = schedule.p, schedule.chunks
    grid = _Grid(
        p=p,
        rounds=schedule.rounds,
        chunks=chunks,
        cell=min(max(72.0 / chunks, 4.0), 13.0 if chunks > 1 else 18.0),
        gap=84.0 + 3.5 * p,
        row=44.0 if p <= 8 else 36.0,
    )
    colours = [_colour(chunk, chunks) for chunk in range(chunks)]
    sets = sorted({m.chunks for m in trace.messages if len(m.chunks) > 1})
    paints = {together: f"url(#m{i})" for i, together in enumerate(sets)}
    parts = [
        *_head(schedule, grid),
        *_gradients(sets, colours),
        *_frame(schedule, grid),
        *_arrows(trace.messages, grid, colours, paints),
        *_strips(trace, grid, colours),
        *_legend(schedule, trace, grid, colours),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _head(schedule: Schedule, grid: _Grid) -> list[str]:
    width, height = grid.width, grid.bottom + _BOTTOM
    title = escape(f"{schedule.kind} {schedule.name}, {schedule.p} ranks")
    facts = [f"p = {schedule.p}", _plural(schedule.chunks, "chunk"), _plural(grid.rounds, "round")]
    if schedule.kind in ("broadcast", "reduce"):
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


def _gradients(sets: Iterable[Chunks], colours: list[str]) -> list[str]:
    """Return one paint for each set of chunks that travel together."""
    lines = ["<defs>"]
    for i, chunks in enumerate(sets):
        stops = "".join(
            f'<stop offset="{k / (len(chunks) - 1):.3g}" stop-color="{colours[chunk]}"/>'
            for k, chunk in enumerate(chunks)
        )
        lines.append(f'<linearGradient id="m{i}" x2="0" y2="1">{stops}</linearGradient>')
    return [*lines, "</defs>"]


def _frame(schedule: Schedule, grid: _Grid) -> list[str]:
    """Return names of ranks and rounds, and the ranks' lines of time."""
    lines = []
    for label in range(grid.rounds):
        x, width = grid.right(label), grid.gap
        if label % 2 == 0:
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
            f"M{grid.right(label):.1f} {y:.1f}h{grid.gap:.1f}" for label in range(grid.rounds)
        )
        lines.append(f'<path d="{between}" stroke="{_INK}" stroke-opacity=".3"/>')
    return lines


def _is_root(schedule: Schedule, rank: int) -> bool:
    return schedule.kind in ("broadcast", "reduce") and rank == schedule.root


def _strips(trace: Trace, grid: _Grid, colours: list[str]) -> list[str]:
    lines = []
    for boundary, ranks in enumerate(trace.held):
        for rank, row in enumerate(ranks):
            x, y = grid.left(boundary), grid.y(rank) - _STRIP / 2
            lines.append(f'<g transform="translate({x:.1f} {y:.1f})">')
            for chunk, held in enumerate(row):
                share = held / trace.contributors
                lines += _cell(chunk * grid.cell, grid.cell, share, colours[chunk])
            lines.append("</g>")
    return lines


def _cell(x: float, width: float, share: float, colour: str) -> list[str]:
    inner = width - (1.5 if width > 6 else 0.8)
    place = f'x="{x:.1f}" width="{inner:.1f}" rx="1.5" fill="{colour}"'
    lines = [f'<rect {place} height="{_STRIP:.0f}" opacity=".2"/>']
    if share > 0:
        height = _STRIP * min(share, 1.0)
        lines.append(f'<rect {place} y="{_STRIP - height:.1f}" height="{height:.1f}"/>')
    return lines


def _arrows(
    messages: Iterable[Message], grid: _Grid, colours: list[str], paints: dict[Chunks, str]
) -> list[str]:
    """Return all arrows, and above them their signs and numbers."""
    messages = list(messages)
    per_round = Counter(m.round for m in messages)
    lines: list[str] = []
    signs: list[str] = []
    for m in messages:
        crowded = per_round[m.round] > _CROWDED * grid.p
        curve = _curve(m, grid)
        colour = colours[m.chunks[len(m.chunks) // 2]]
        style = 'stroke-width="1.2" opacity=".8"' if crowded else 'stroke-width="2"'
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = curve
        lines.append(
            f'<path d="M{x0:.1f} {y0:.1f}C{x1:.1f} {y1:.1f} {x2:.1f} {y2:.1f} {x3:.1f} {y3:.1f}" '
            f'fill="none" stroke="{paints.get(m.chunks, colour)}" {style}/>'
        )
        signs += _fold_sign(x3 + _SIGN, y3, colour) if m.folds else _head_sign(x3, y3, colour)
        if not crowded and grid.chunks > 1:
            signs += _numbers(m.chunks, curve, colour)
    return lines + signs


def _curve(m: Message, grid: _Grid) -> list[Point]:
    """Return the Bezier curve from the sender's strip to the receiver's next one."""
    x0, y0 = grid.right(m.round) + 2, grid.y(m.sender)
    x3, y3 = grid.left(m.round + 1) - (2 * _SIGN + 3 if m.folds else 8), grid.y(m.receiver)
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


def _numbers(chunks: Chunks, curve: list[Point], colour: str) -> list[str]:
    """Return the label with the chunks' numbers, near the sender, where arrows lie apart."""
    words = _ranges(chunks)
    # So early on the curve that it has hardly left the sender's row, where no other label is.
    height = abs(curve[3][1] - curve[0][1])
    t = min(0.13, math.sqrt(2.5 / max(height, 1.0)))
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    x = sum(w * px for w, (px, _) in zip(weights, curve, strict=True))
    y = sum(w * py for w, (_, py) in zip(weights, curve, strict=True))
    width = 6.2 * len(words) + 8
    return [
        f'<rect x="{x - width / 2:.1f}" y="{y - 7.5:.1f}" width="{width:.1f}" height="15" rx="4" '
        f'fill="{colour}"/>',
        f'<text x="{x:.1f}" y="{y + 3.7:.1f}" text-anchor="middle" font-size="10.5" '
        f'font-weight="600" fill="#fff">{words}</text>',
    ]


def _ranges(chunks: Chunks) -> str:
    """Write runs of chunks short: 0-3, 6."""
    runs: list[list[int]] = []
    for chunk in chunks:
        if runs and chunk == runs[-1][-1] + 1:
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}\u2013{run[-1]}" for run in runs]
    return ",".join(words if len(words) <= 3 else [*words[:2], "\u2026"])


def _legend(schedule: Schedule, trace: Trace, grid: _Grid, colours: list[str]) -> list[str]:
    """Explain the signs that occur, on one line below."""
    y, x, colour = grid.bottom + 38, _LEFT, colours[len(colours) // 2]
    cell = [f'<g transform="translate(0 {-_STRIP / 2})">', *_cell(0, 13, 0.6, colours[0]), "</g>"]
    whole = f"a chunk: how many of {grid.p} operands it holds"
    moved = "a chunk: held or not"
    entries = [(cell, 13.0, moved if schedule.kind in ("allgather", "broadcast") else whole)]
    if any(m.folds for m in trace.messages):
        entries.append((_line(colour) + _fold_sign(14 + _SIGN, 0, colour), 27.0, "folds"))
    if not all(m.folds for m in trace.messages):
        entries.append((_line(colour) + _head_sign(18, 0, colour), 24.0, "overwrites"))
    lines = []
    for drawn, width, words in entries:
        lines += [
            f'<g transform="translate({x:.1f} {y:.1f})">',
            *drawn,
            f'<text x="{width + 7:.1f}" y="4">{words}</text></g>',
        ]
        x += width + 7 + 5.6 * len(words) + 22
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
