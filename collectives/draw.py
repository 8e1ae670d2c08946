# SPDX-License-Identifier: Apache-2.0
"""Draw an algorithm: a space-time diagram as SVG, or a timeline as text."""

from __future__ import annotations

from collections.abc import Iterable

from collectives.algorithms import Schedule, Segment, Step, schedule
from collectives.names import choose_from
from collectives.own import SELF


def draw(name: str, p: int, kind: str = "allreduce", root: int = 0, *, format: str = "svg") -> str:
    """Return a drawing of what ``p`` ranks do in an algorithm.

    "svg": a self-contained image; ranks are rows, time runs to the right, each arrow is a message,
    and the cells between show what a rank holds: chunks; in a scan, the operands that are in its
    result; in an alltoall, the blocks by source and destination. "text": one line per round and
    rank.
    Raises InvalidArgumentError for an unknown algorithm or a ``root`` that is not a rank,
    UnsupportedError for a ``p`` that does not fit the algorithm.
    """
    choose_from(format, ("svg", "text"), "draw: format")
    shown = schedule(name, p, kind, root)
    if format == "text":
        return timeline(shown)
    # Not with the package: most programs never draw.
    from collectives.svg import space_time
    from collectives.symbolic import symbolic_run

    return space_time(shown, symbolic_run(shown))


def timeline(shown: Schedule) -> str:
    """Return one line per round and rank: what it sends, receives, folds and copies."""
    lines = [f"{shown.kind} {shown.name}: p = {shown.p}, chunks = {shown.chunks}"]
    width = len(str(shown.p - 1))
    labels = sorted({step.round for steps in shown.ranks for step in steps})
    digits = len(str(max(labels, default=0)))
    for label in labels:
        for rank, steps in enumerate(shown.ranks):
            done = [_words(step) for step in steps if step.round == label]
            if done:
                lines.append(f"round {label:{digits}}  rank {rank:{width}}  {'; '.join(done)}")
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
