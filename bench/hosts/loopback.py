# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.hosts.loopback``: two ranks over unshaped loopback TCP beside a bare socket.

The native program coll_loopback makes the ranks, which believe to be on two hosts, and exchanges as
many bytes each way over a bare duplex socket of the same two processes: its loop does not block,
has no bound on a call, and spins. An allgather in place is nothing but that exchange, any other
copies this rank's part, too; an allreduce of two ranks moves as many bytes and folds half of them.
It needs two cores, and no root. Whether those share a cache is probed between rounds, since it may
change: rounds of each placement are judged apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from bench.hosts.goals import M
from bench.hosts.records import Spread
from bench.hosts.verdicts import Goal, Row, failed, finish, options, positive
from bench.limits.program import ProgramError, build
from bench.peers.cells import PLACEMENTS
from collectives.measure import placement

PROGRAM = "bench.hosts.loopback"
PRESET = "release"
RAW = "raw"
WAYS = {
    "in place": "allgather in place, a pure exchange",
    "allgather": "allgather, which copies too",
    "allreduce": "allreduce, which folds too",
}
GOAL, GOAL_BYTES = Goal(0.9), 8 * M
TIMEOUT_S = 300.0


def measure(rounds: int, nbytes: int) -> dict[str, Any]:
    """Run the program; return what it prints."""
    path = build(PRESET, "coll_loopback", folder="hosts")
    command = [str(path), str(rounds), str(nbytes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise ProgramError(done.stderr.strip() or f"{path} ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def judge(found: dict[str, Any]) -> list[Row]:
    """Return ratios to the bare socket of the same round, and the rates of all, by placement."""
    void = astray(found)
    goal = GOAL if found["bytes"] == GOAL_BYTES else None
    rows = []
    for place, times in by_placement(found).items():
        rows += [
            Row(
                f"{place}: bare socket over ours: {title}",
                _ratio(times[RAW], times[way]),
                goal,
                void,
            )
            for way, title in WAYS.items()
        ]
        for way, blocks in times.items():
            rates = Spread.of([found["bytes"] / us / 1e3 for us in blocks.values()])
            rows.append(Row(f"{place}: GB/s each way: {way}", rates))
    # Where the cores moved within every round, nothing was found out.
    return rows or [Row(f"bare socket over ours: {way}", None, goal, void) for way in WAYS]


def by_placement(found: dict[str, Any]) -> dict[str, dict[str, dict[int, float]]]:
    """Return microseconds by placement, way and round; what moved within a round is left out."""
    places: dict[str, dict[str, dict[int, float]]] = {}
    for block in found["blocks"]:
        turn, lines = block["round"], found["lines"]
        place = placement(lines[turn : turn + 2])  # before and after it
        if place in PLACEMENTS:
            ways = places.setdefault(place, {})
            ways.setdefault(block["way"], {})[turn] = block["us"]
    return {place: places[place] for place in PLACEMENTS if place in places}


def astray(found: dict[str, Any]) -> str | None:
    """Return why nothing counts: fewer bytes on the loopback than ranks exchange."""
    least = 2 * found["bytes"] * found["calls"]
    for block in found["blocks"]:
        if block["counted"] < least:
            return (
                f"round {block['round']}, {block['way']}: {block['counted']} bytes on the "
                f"loopback, and {least} of payload"
            )
    return None


def _ratio(raw: dict[int, float], ours: dict[int, float]) -> Spread | None:
    return Spread.of([raw[turn] / us for turn, us in ours.items()])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. A void row, or with --strict a missed goal, is 1; a failure is 2."""
    parser = options(PROGRAM, __doc__, "loopback.json")
    parser.set_defaults(rounds=31)
    parser.add_argument("--mib", type=positive, default=8, help="each way, in one call (8)")
    chosen = parser.parse_args(arguments)
    try:
        found = measure(chosen.rounds, chosen.mib * M)
    except (ProgramError, subprocess.TimeoutExpired, OSError) as error:
        return failed(PROGRAM, error)
    title = f"{chosen.mib} MiB each way over the loopback, two ranks"
    return finish(chosen, title, judge(found), found)


if __name__ == "__main__":
    sys.exit(main())
