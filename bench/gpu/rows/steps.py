# SPDX-License-Identifier: Apache-2.0
"""What a step of a plan costs by itself: rings of vectors without elements."""

from __future__ import annotations

from collections.abc import Iterator

from bench.gpu.figures import Cell, Figure
from bench.gpu.operands import Operands
from bench.gpu.rounds import Enqueue
from bench.gpu.state import Bench
from bench.gpu.team import Team

STEPS = 1000  # about so many in a graph


def figures(bench: Bench) -> Iterator[Figure]:
    """Measure rings by pulls, of each number of ranks; each step waits for a neighbour's."""
    for ranks in bench.extent.ranks:
        if bench.over("the rest of empty steps"):
            return
        steps = 2 * (ranks - 1)
        with Operands(bench.yard, ranks, 0, "float32") as operands, Team(ranks) as team:
            ways: dict[str, Enqueue] = {
                "ring": _ring(team, operands),
                "nothing": lambda blocks=ranks: bench.yard.nothing(blocks),  # type: ignore[misc]
            }
            ways["ring"]()
            times = bench.measure(ways, max(1, STEPS // steps))
            ways["ring"]()  # says so where a kernel gave up
        each = [
            1e9 * (ring - nothing) / steps
            for ring, nothing in zip(times["ring"], times["nothing"], strict=True)
        ]
        yield Cell("empty step of a ring", ranks, 0, "float32").figure("ns", each)


def _ring(team: Team, operands: Operands) -> Enqueue:
    inputs, outputs = operands.inputs, operands.outputs

    def enqueue() -> None:
        team.run(
            lambda comm: comm.allreduce(
                inputs[comm.rank], outputs[comm.rank], algorithm="ring", mode="pull"
            )
        )

    return enqueue
