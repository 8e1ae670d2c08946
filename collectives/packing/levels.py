# SPDX-License-Identifier: Apache-2.0
"""What a topology says that each rank can send to each other."""

from __future__ import annotations

import math

from collectives.errors import InvalidArgumentError
from collectives.topology.value import LEVELS, Topology

# A level, a room of the level below, or a rank, and whether it is its way out.
Port = tuple[str, tuple[int, ...], bool]


def rates(topology: Topology) -> list[list[float]]:
    """Return bytes per second by sender and receiver; 0 where no link was measured or given.

    Pairs with a link of their own have it to themselves; others share their level's equally. On a
    level a rank, or a room of the level below, has one port out and one in, as it is simulated
    (native/topology/network_measured.cc); among the nearest ranks only the port out.
    """
    p = topology.size
    found = [[0.0] * p for _ in range(p)]
    shared = dict[Port, list[tuple[int, int]]]()
    rooms = [_rooms(topology, place) for place in range(len(LEVELS))]
    for a in range(p):
        for b in range(p):
            own = topology.pairs.get((min(a, b), max(a, b)))
            if a == b:
                continue
            if own is not None:
                found[a][b] = _bandwidth(f"of ranks {a} and {b}", own.bandwidth)
                continue
            level = topology.level(a, b)
            room = rooms[LEVELS.index(level)]
            shared.setdefault((level, room[a], True), []).append((a, b))
            if level != LEVELS[0]:
                shared.setdefault((level, room[b], False), []).append((a, b))
    for (level, _, _), pairs in shared.items():
        link = topology.links.get(level)
        if link is None:
            continue  # nobody said that there is one
        part = _bandwidth(f"of level {level!r}", link.bandwidth) / len(pairs)
        for a, b in pairs:
            found[a][b] = min(found[a][b] or part, part)
    return found


def _rooms(topology: Topology, place: int) -> list[tuple[int, ...]]:
    """Return, for each rank, who shares its port on a level: its room of the level below."""
    if place == 0:
        return [(rank,) for rank in range(topology.size)]
    rooms = {rank: tuple(room) for room in topology.groups(LEVELS[place - 1]) for rank in room}
    return [rooms[rank] for rank in range(topology.size)]


def _bandwidth(what: str, rate: float) -> float:
    if not math.isfinite(rate):
        raise InvalidArgumentError(
            f"pack: the link {what} has beta 0, as if it carried any number of bytes at once: give "
            "its seconds per byte"
        )
    return rate
