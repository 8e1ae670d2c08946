# SPDX-License-Identifier: Apache-2.0
"""A topology as a picture: hosts are boxes, sockets and NUMA nodes boxes inside, ranks squares."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from collectives.errors import InvalidArgumentError
from collectives.topology.value import LEVELS, Link, Topology

_INK = "#7d8590"  # reads on white and on near-black
_FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"
_CHIP, _GAP, _PAD, _HEAD = 26.0, 6.0, 10.0, 20.0
_PER_ROW = 8  # ranks side by side in a node
_PAGE = 900.0  # where a row of hosts ends
_MARGIN = 16.0
_NAMES = {
    "numa": "within a NUMA node",
    "package": "between NUMA nodes of a socket",
    "host": "between sockets",
    "network": "between hosts",
}


def drawing(topology: Topology, format: str) -> str:
    """Return the drawing in a format, "svg" or "text"."""
    if format == "svg":
        return _svg(topology)
    if format == "text":
        return _text(topology)
    raise InvalidArgumentError(f"draw: format is 'svg' or 'text', not {format!r}")


def words_of(link: Link) -> str:
    """Return "12.3 us + 118 MB/s"."""
    speed = f"{link.bandwidth / 1e6:,.0f} MB/s" if link.beta else "any length at once"
    at_once = f" behind {link.bucket / 1024:.0f} KiB" if link.bucket else ""
    return f"{link.alpha * 1e6:.3g} us, {speed}{at_once}"


def _count(topology: Topology) -> str:
    """Return "4 ranks on 2 hosts"."""
    counts = (topology.size, "rank"), (len(topology.groups("host")), "host")
    return " on ".join(f"{n} {what}" + ("" if n == 1 else "s") for n, what in counts)


# ---- text ----------------------------------------------------------------------------------------


def _text(topology: Topology) -> str:
    lines = [_count(topology)]
    for host in topology.groups("host"):
        lines.append(topology.places[host[0]].host)
        for package in _within(topology, "package", host):
            for node in _within(topology, "numa", package):
                place = topology.places[node[0]]
                ranks = ", ".join(str(rank) for rank in node)
                lines.append(f"  socket {place.package}, node {place.numa}: ranks {ranks}")
    lines += [
        f"one machine with {topology.cores(ranks) or 'an unknown number of'} CPUs: "
        + ", ".join(hosts)
        for ranks in topology.machines()
        if len(hosts := sorted({topology.places[rank].host for rank in ranks})) > 1
    ]
    lines += [
        f"{_NAMES[level]}: {words_of(topology.links[level])}"
        for level in LEVELS
        if level in topology.links
    ]
    lines += [
        f"ranks {a} and {b}: {words_of(link)}" for (a, b), link in sorted(topology.pairs.items())
    ]
    return "\n".join(lines)


def _within(topology: Topology, level: str, ranks: list[int]) -> list[list[int]]:
    return [group for group in topology.groups(level) if set(group) <= set(ranks)]


# ---- svg -----------------------------------------------------------------------------------------


@dataclass
class _Box:
    """A room with its title: either ranks, or rooms side by side."""

    title: str
    ranks: list[int]
    rooms: list[_Box]

    @property
    def width(self) -> float:
        inside = (
            sum(room.width for room in self.rooms) + _GAP * (len(self.rooms) - 1)
            if self.rooms
            else min(len(self.ranks), _PER_ROW) * (_CHIP + _GAP) - _GAP
        )
        return max(inside, 6.5 * len(self.title)) + 2 * _PAD

    @property
    def height(self) -> float:
        inside = (
            max(room.height for room in self.rooms)
            if self.rooms
            else -(-len(self.ranks) // _PER_ROW) * (_CHIP + _GAP) - _GAP
        )
        return inside + _HEAD + 2 * _PAD

    def lines(self, x: float, y: float) -> list[str]:
        out = [
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{self.width:.0f}" height="{self.height:.0f}" '
            f'rx="6" fill="none" stroke="{_INK}"/>',
            f'<text x="{x + _PAD:.0f}" y="{y + _PAD + 10:.0f}">{escape(self.title)}</text>',
        ]
        at = x + _PAD
        for room in self.rooms:
            out += room.lines(at, y + _PAD + _HEAD)
            at += room.width + _GAP
        for i, rank in enumerate(self.ranks if not self.rooms else []):
            left = x + _PAD + i % _PER_ROW * (_CHIP + _GAP)
            top = y + _PAD + _HEAD + i // _PER_ROW * (_CHIP + _GAP)
            out.append(
                f'<rect x="{left:.0f}" y="{top:.0f}" width="{_CHIP:.0f}" height="{_CHIP:.0f}" '
                f'rx="4" fill="#3b82f6" fill-opacity="0.35" stroke="#3b82f6"/>'
                f'<text x="{left + _CHIP / 2:.0f}" y="{top + _CHIP / 2 + 4:.0f}" '
                f'text-anchor="middle">{rank}</text>'
            )
        return out


def _box(topology: Topology, host: list[int]) -> _Box:
    packages = []
    for package in _within(topology, "package", host):
        nodes = [
            _Box(f"node {topology.places[node[0]].numa}", node, [])
            for node in _within(topology, "numa", package)
        ]
        packages.append(_Box(f"socket {topology.places[package[0]].package}", package, nodes))
    return _Box(topology.places[host[0]].host, host, packages)


def _svg(topology: Topology) -> str:
    boxes = [_box(topology, host) for host in topology.groups("host")]
    x = y = _MARGIN
    y += 24.0
    tallest = right = 0.0
    body: list[str] = []
    for box in boxes:
        if x > _MARGIN and x + box.width > _PAGE:
            x, y, tallest = _MARGIN, y + tallest + 2 * _GAP, 0.0
        body += box.lines(x, y)
        x += box.width + 2 * _GAP
        right, tallest = max(right, x), max(tallest, box.height)
    y += tallest + 24.0
    for level in (level for level in LEVELS if level in topology.links):
        words = f"{_NAMES[level]}: {words_of(topology.links[level])}"
        body.append(f'<text x="{_MARGIN:.0f}" y="{y:.0f}">{escape(words)}</text>')
        y += 18.0
    width, height = max(right, 420.0) + _MARGIN, y + 4.0
    title = _count(topology)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{_FONT}" '
        f'font-size="12" fill="{_INK}">',
        f"<title>{title}</title>",
        f'<text x="{_MARGIN:.0f}" y="28" font-size="16" font-weight="600">{title}</text>',
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"
