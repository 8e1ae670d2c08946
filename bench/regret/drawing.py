# SPDX-License-Identifier: Apache-2.0
"""A panel as SVG, for a page that says what its colours are: curves above, paths beneath."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from bench.regret.document import Ratio, Row
from bench.regret.panels import HUES, LINES, TITLES, Block, Panel
from collectives.cli.sizes import format_size

_WIDTH, _LEFT, _RIGHT = 760.0, 54.0, 84.0
_TOP, _PLOT, _AXIS = 14.0, 220.0, 34.0
_LANE, _GAP = 30.0, 4.0
_APART = 4.0  # of the points of one size, in user units
_LETTER = 5.9  # mean width of one


@dataclass(frozen=True)
class _Scale:
    """Where things lie."""

    panel: Panel

    def x(self, nbytes: float) -> float:
        least, most = math.log(self.panel.least), math.log(self.panel.most)
        share = (math.log(nbytes) - least) / (most - least)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, ratio: float) -> float:
        low, high = math.log(self.panel.low), math.log(self.panel.high)
        share = (math.log(min(max(ratio, self.panel.low), self.panel.high)) - low) / (high - low)
        return _TOP + (1 - share) * _PLOT


def drawn(panel: Panel, names: Sequence[str]) -> str:
    """Return the drawing; ``names``: the algorithms of the collective, which have colours."""
    scale = _Scale(panel)
    lanes = ["best", *panel.ways]
    height = _TOP + _PLOT + _AXIS + len(lanes) * (_LANE + _GAP)
    title = f"Regret of {panel.kind} of {panel.team.title} over bytes, and what was chosen"
    parts = [
        f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{escape(title)}">',
        *_axes(scale),
        *(part for way in panel.ways for part in _curve(scale, way)),
        *(part for i, way in enumerate(lanes) for part in _lane(scale, way, i, names)),
        "</svg>",
    ]
    return "\n".join(parts)


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _axes(scale: _Scale) -> Iterator[str]:
    left, right, bottom = _LEFT, _WIDTH - _RIGHT, _TOP + _PLOT
    for ratio in scale.panel.ticks():
        y = scale.y(ratio)
        yield _line(left, y, right, y, "one" if ratio == 1 else "grid")
        yield _text(left - 8, y + 4, f"{ratio:g}", "tick end")
    for size in scale.panel.sizes():
        x = scale.x(size)
        yield _line(x, bottom, x, bottom + 5, "grid")
        yield _text(x, bottom + 19, format_size(size), "tick middle")
    for ratio, words in LINES:
        y = scale.y(ratio)
        yield _line(left, y, right, y, "goal")
        yield _text(right + 6, y + 4, words, "goal-name")


def _curve(scale: _Scale, way: str) -> Iterator[str]:
    aside = _APART * (scale.panel.ways.index(way) - (len(scale.panel.ways) - 1) / 2)
    rows = [row for row in scale.panel.rows if way in row.ways]
    points = [(scale.x(row.nbytes) + aside, scale.y(row.ways[way].ratio)) for row in rows]
    yield f'<g class="{way}">'
    yield f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="curve"/>'
    for row, (x, y) in zip(rows, points, strict=True):
        yield _point(scale, row, way, x, y)
    yield "</g>"


def _point(scale: _Scale, row: Row, way: str, x: float, y: float) -> str:
    one = row.ways[way]
    kind = "undecided" if row.undecided else "held-out" if row.held_out else "tuned-size"
    return (
        f'<g class="{kind}"><title>{escape(told(row, way))}</title>'
        + _line(x, scale.y(one.low), x, scale.y(one.high), "interval")
        + _mark(way, x, y, row.undecided)
        + "</g>"
    )


def _mark(way: str, x: float, y: float, undecided: bool) -> str:
    if undecided:
        d = f"M{x - 3:.1f} {y - 3:.1f}l6 6m0-6l-6 6"
        return f'<path d="{d}" class="mark"/>'
    if way == "tuned":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" class="mark"/>'
    if way == "rule":
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" class="mark"/>'
    return f'<path d="M{x:.1f} {y - 4.4:.1f}l4.4 4.4-4.4 4.4-4.4-4.4z" class="mark"/>'


def told(row: Row, way: str) -> str:
    """Return a point in words."""
    words = f"{row.nbytes:,} bytes by {TITLES[way]}: {ratio_of(row.ways[way])}"
    words += f"\nchosen: {row.ways[way].choice}\nbest: {row.best}"
    if row.held_out:
        words += "\nthis size was held out"
    if row.undecided:
        words += f"\nundecided: the best over itself is {ratio_of(row.same)}"
    return words


def ratio_of(one: Ratio) -> str:
    """Return "1.012 [0.998, 1.031]"."""
    return f"{one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}]"


def _lane(scale: _Scale, way: str, number: int, names: Sequence[str]) -> Iterator[str]:
    top = _TOP + _PLOT + _AXIS + number * (_LANE + _GAP)
    yield _text(_LEFT - 8, top + _LANE / 2 + 4, TITLES[way], "tick end")
    for block in scale.panel.path(way):
        yield _block(scale, block, top, names)


def _block(scale: _Scale, block: Block, top: float, names: Sequence[str]) -> str:
    begin, end = scale.x(block.begin), scale.x(block.end)
    hue = names.index(block.algorithm) % len(HUES)
    parts = [
        f"<g><title>{escape(block.choice)}\n{_size(block.begin)} to {_size(block.end)}</title>",
        f'<rect x="{begin + 0.5:.1f}" y="{top:.1f}" width="{end - begin - 1:.1f}" '
        f'height="{_LANE:g}" rx="3" class="block a{hue}"/>',
    ]
    middle = (begin + end) / 2
    name, parameters = block.lines((end - begin - 8) / _LETTER)
    if name:
        parts.append(_text(middle, top + 13, name, "name middle"))
    if parameters:
        parts.append(_text(middle, top + 25, parameters, "parameters middle"))
    return "".join([*parts, "</g>"])


def _size(nbytes: float) -> str:
    return f"{nbytes:,.0f} bytes"
