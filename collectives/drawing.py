# SPDX-License-Identifier: Apache-2.0
"""Draw an algorithm: a space-time diagram as SVG, or a timeline as text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from collectives.catalogue import Schedule, Segment, Step, by_round, schedule_within
from collectives.errors import UnsupportedError
from collectives.names import choose_from
from collectives.own import SELF

if TYPE_CHECKING:
    from collectives.panel import Panel

# What a drawing is made of: numbers of the encoded schedule, cells and arrows of the image. So many
# take a second or two, and browsers open them.
_MOST_NUMBERS = {"svg": 1 << 20, "text": 1 << 22}
_MOST_PIECES = 100_000
_TEXT = 'take the text (format="text"; of collbench, a file that ends in .txt)'


def draw(name: str, p: int, kind: str = "allreduce", root: int = 0, *, format: str = "svg") -> str:
    """Return a drawing of what ``p`` ranks do in an algorithm.

    "svg": a self-contained image; ranks are rows, time runs to the right, each arrow is a message,
    and the cells between show what a rank holds: chunks; in a scan, the operands that are in its
    result; in an alltoall, the blocks by source and destination. "text": one line per round and
    rank.
    Raises InvalidArgumentError for an unknown algorithm or a ``root`` that is not a rank,
    UnsupportedError for a ``p`` that does not fit the algorithm, or for which the drawing would be
    too large to be looked at.
    """
    choose_from(format, ("svg", "text"), "draw: format")
    shown = schedule_within(_MOST_NUMBERS[format], name, p, kind, root)
    if shown is None:
        instead = f", or {_TEXT}" if format == "svg" else ""
        raise UnsupportedError(
            f"draw: {kind} {name} for {p} ranks has too many steps to be shown: draw fewer "
            f"ranks{instead}"
        )
    if format == "text":
        return timeline(shown)
    # Not with the package: most programs never draw.
    from collectives.panel import panel_of
    from collectives.svg import space_time
    from collectives.symbolic import symbolic_run

    _check_size(shown, panel_of(shown))
    return space_time(shown, symbolic_run(shown))


def _check_size(shown: Schedule, panel: Panel) -> None:
    """Raise UnsupportedError where the image would have too much to show."""
    cells = (shown.rounds + 1) * shown.p * panel.rows * panel.columns
    sends = (step for steps in shown.ranks for step in steps if step.op == "send")
    arrows = sum(len(step.peers) for step in sends)
    if cells + arrows > _MOST_PIECES:
        raise UnsupportedError(
            f"draw: {shown.kind} {shown.name} for {shown.p} ranks has {cells} cells and {arrows} "
            f"arrows, and an image has at most {_MOST_PIECES} of both: draw fewer ranks, or {_TEXT}"
        )


def timeline(shown: Schedule) -> str:
    """Return one line per round and rank: what it sends, receives, folds and copies."""
    lines = [f"{shown.kind} {shown.name}: p = {shown.p}, chunks = {shown.chunks}"]
    width = len(str(shown.p - 1))
    rounds = by_round(shown)
    digits = len(str(max((label for label, _ in rounds), default=0)))
    for label, steps in rounds:
        for rank, mine in groupby(steps, key=lambda entry: entry[0]):
            done = "; ".join(_words(step) for _, step in mine)
            lines.append(f"round {label:{digits}}  rank {rank:{width}}  {done}")
    return "\n".join(lines) + "\n"


def _words(step: Step) -> str:
    source, target = _cells(step.source), _cells(step.target)
    if step.op == "copy":
        return f"copy {source} to {target}"
    if step.op == "reduce":
        return f"fold {source} + {target} into {target}"
    if step.op == "send":
        return f"send {source} to {_ranks(step.peers)}"
    if step.op == "recv":
        return f"recv {target} from {_ranks(step.peers)}"
    order = " + ".join(f"own {source}" if q == SELF else f"rank {q}" for q in step.peers)
    balanced = ", balanced" if step.shape == "balanced" and len(step.peers) > 2 else ""
    return f"fold {order} into {target}{balanced}"


def _ranks(peers: Iterable[int]) -> str:
    return "rank " + ", ".join(str(q) for q in peers)


def _cells(segments: Iterable[Segment]) -> str:
    return ", ".join(
        f"{s.buffer}[{s.first}]" if s.cells == 1 else f"{s.buffer}[{s.first}:{s.first + s.cells}]"
        for s in segments
    )
