# SPDX-License-Identifier: Apache-2.0
"""The timeline of a simulation as a picture: a row per rank, a bar for what it does."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from collectives.errors import InvalidArgumentError
from collectives.names import choose_from

if TYPE_CHECKING:
    from collectives.simulation import Moment, Simulation

_INK = "#7d8590"  # reads on white and on near-black
_FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
_COLOURS = {"send": "#4c8bf5", "receive": "#c9ced6", "fold": "#e8833a", "copy": "#3aa675"}
_WORDS = {"send": "message", "receive": "waits", "fold": "folds", "copy": "copies"}
_LEFT, _TOP, _WIDTH, _ROW, _BAR = 64.0, 56.0, 900.0, 18.0, 12.0
_MOST_RANKS = 64  # that are drawn
_COLUMNS = 72  # of letters


def drawing(simulation: Simulation, format: str) -> str:
    """Return the drawing in a format, "svg" or "text"."""
    choose_from(format, ("svg", "text"), "draw: format")
    if not simulation.moments:
        raise InvalidArgumentError("draw: there is no timeline: simulate(..., timeline=True)")
    return _svg(simulation) if format == "svg" else _text(simulation)


def _title(s: Simulation) -> str:
    length = "" if s.kind == "barrier" else f", {s.nbytes:,} bytes"
    return (
        f"{s.kind} by {s.algorithm}, {s.p} ranks{length} on {s.topology}: {s.seconds * 1e6:,.1f} us"
    )


def _shown(s: Simulation) -> list[Moment]:
    return [m for m in s.moments if m.rank < _MOST_RANKS]


def _text(s: Simulation) -> str:
    """Letters for what a rank does: s while its message travels, f folds, c copies, . waits."""
    ranks = min(s.p, _MOST_RANKS)
    rows = [[" "] * _COLUMNS for _ in range(ranks)]
    scale = _COLUMNS / s.seconds if s.seconds else 0.0
    order = {"receive": 0, "send": 1, "copy": 2, "fold": 3}
    for m in sorted(_shown(s), key=lambda m: order[m.act]):
        letter = "." if m.act == "receive" else m.act[0]
        first = min(int(m.begin * scale), _COLUMNS - 1)
        for column in range(first, max(first + 1, min(round(m.end * scale), _COLUMNS))):
            rows[m.rank][column] = letter
    lines = [_title(s), "s a message of the rank travels, f it folds, c it copies, . it waits"]
    lines += [f"{rank:>4} |{''.join(row)}|" for rank, row in enumerate(rows)]
    if s.p > ranks:
        lines.append(f"and {s.p - ranks} more ranks")
    return "\n".join(lines)


def _svg(s: Simulation) -> str:
    ranks = min(s.p, _MOST_RANKS)
    scale = _WIDTH / s.seconds if s.seconds else 0.0
    height = _TOP + ranks * _ROW + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 24:g} {height:g}" '
        f'font-family="{_FONT}" font-size="11" fill="{_INK}">',
        f"<title>{escape(_title(s))}</title>",
        f'<text x="{_LEFT:g}" y="20" font-size="14">{escape(_title(s))}</text>',
        *_legend(),
    ]
    for rank in range(ranks):
        y = _TOP + rank * _ROW
        parts.append(f'<text x="{_LEFT - 8:g}" y="{y + 10:g}" text-anchor="end">{rank}</text>')
    for m in sorted(_shown(s), key=lambda m: m.act == "receive", reverse=True):
        parts.append(_bar(m, scale))
    parts += _axis(s, _TOP + ranks * _ROW + 6)
    if s.p > ranks:
        parts.append(f'<text x="{_LEFT:g}" y="{height - 6:g}">and {s.p - ranks} more ranks</text>')
    return "\n".join([*parts, "</svg>", ""])


def _bar(m: Moment, scale: float) -> str:
    thin = m.act in ("fold", "copy")
    y = _TOP + m.rank * _ROW + (_BAR / 4 if thin else 0)
    peer = f" with rank {m.peer}" if m.peer >= 0 else ""
    what = f"{m.act} {m.nbytes:,.0f} bytes, round {m.round}, {m.begin * 1e6:.2f} us{peer}"
    width, height = max((m.end - m.begin) * scale, 0.5), _BAR / 2 if thin else _BAR
    return (
        f'<rect x="{_LEFT + m.begin * scale:.2f}" y="{y:.1f}" '
        f'width="{width:.2f}" height="{height:g}" '
        f'fill="{_COLOURS[m.act]}" fill-opacity="0.75">'
        f"<title>{escape(what)}</title></rect>"
    )


def _legend() -> list[str]:
    parts = []
    for i, (act, colour) in enumerate(_COLOURS.items()):
        x = _LEFT + i * 110
        parts.append(f'<rect x="{x:g}" y="32" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17:g}" y="42">{_WORDS[act]}</text>')
    return parts


def _axis(s: Simulation, y: float) -> list[str]:
    parts = [f'<path d="M{_LEFT:g} {y:g}h{_WIDTH:g}" stroke="{_INK}"/>']
    for i in range(5):
        x = _LEFT + _WIDTH * i / 4
        label = f"{s.seconds * 1e6 * i / 4:,.4g} us"
        parts.append(f'<text x="{x:g}" y="{y + 14:g}" text-anchor="middle">{label}</text>')
    return parts
