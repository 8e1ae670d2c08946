# SPDX-License-Identifier: Apache-2.0
"""Ways to do something, each a graph, take turns round by round."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from bench.gpu.yardsticks import Graph, Yardsticks

Enqueue = Callable[[], None]
Check = Callable[[str, Graph], None]
Times = dict[str, list[float]]  # of each way, one for each round: seconds of a call
MOST_REPLAYS = 200


def measure(
    yard: Yardsticks,
    ways: Mapping[str, Enqueue],
    calls: int,
    rounds: int,
    least_s: float,
    check: Check | None = None,
) -> Times:
    """Capture ``calls`` calls of each way, and replay each in all rounds for ``least_s`` or so.

    What a way allocates it must have allocated before. ``check`` replays a way and looks at it.
    """
    with ExitStack() as held:
        graphs = {}
        for name, enqueue in ways.items():
            graphs[name] = captured(yard, enqueue, calls)
            held.callback(graphs[name].close)
            if check is not None:
                check(name, graphs[name])
        replays = {name: _replays(graph, least_s) for name, graph in graphs.items()}
        times: Times = {name: [] for name in ways}
        for turn in range(rounds):
            for name in _turned(list(graphs), turn):
                times[name].append(graphs[name].seconds(replays[name]))
    return times


def captured(yard: Yardsticks, enqueue: Enqueue, calls: int) -> Graph:
    """Return so many calls as a graph."""
    with yard.capture(calls) as found:
        for _ in range(calls):
            enqueue()
    return found[0]


def _replays(graph: Graph, least_s: float) -> int:
    """Return how often a graph is to run to be timed; the first run warms up."""
    graph.seconds()
    once = max(graph.seconds() * graph.calls, 1e-7)
    return max(1, min(MOST_REPLAYS, math.ceil(least_s / once)))


def _turned(names: Sequence[str], by: int) -> list[str]:
    """Return names beginning with another one in each round: none has always the same before it."""
    by %= len(names)
    return [*names[by:], *names[:by]]


def ratios(above: Sequence[float], below: Sequence[float], factor: float = 1.0) -> list[float]:
    """Return quotients within a round."""
    return [factor * a / b for a, b in zip(above, below, strict=True)]
