# SPDX-License-Identifier: Apache-2.0
"""Short allreduces, replayed as graphs, in hops of a flag between two blocks.

What a kernel that does nothing takes, of as many blocks, is taken off: that is the launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.gpu.arrays import GpuMemory
from bench.gpu.figures import Cell, Figure, Goal
from bench.gpu.operands import Operands
from bench.gpu.rounds import Enqueue
from bench.gpu.state import KIB, Bench
from bench.gpu.team import Team
from bench.gpu.yardsticks import Graph

SIZES = (1 * KIB, 4 * KIB, 16 * KIB)
CALLS = 32  # of a graph
A_CHANNEL = 4 * KIB  # bytes of a chunk that are worth one (Room::least_bytes in assemble.h)
WORDS = 256  # bytes, of the flags


def figures(bench: Bench) -> Iterator[Figure]:
    """Measure what the choice takes for short vectors."""
    words = GpuMemory(bench.yard, WORDS)
    for ranks in bench.extent.ranks:
        for nbytes in SIZES:
            if bench.over("the rest of short allreduces"):
                return
            yield from _cell(bench, words, ranks, nbytes)
    words.close()


def _cell(bench: Bench, words: GpuMemory, ranks: int, nbytes: int) -> Iterator[Figure]:
    yard, turns = bench.yard, bench.extent.turns
    blocks = ranks * max(1, nbytes // A_CHANNEL)
    with Operands(yard, ranks, nbytes, "float32") as operands, Team(ranks) as team:
        inputs, outputs = operands.inputs, operands.outputs

        def allreduce() -> None:
            team.run(lambda comm: comm.allreduce(inputs[comm.rank], outputs[comm.rank]))

        operands.poison()
        allreduce()
        operands.check("the choice for short vectors")
        ways: dict[str, Enqueue] = {
            "allreduce": allreduce,
            "nothing": lambda: yard.nothing(blocks),
            "flags": lambda: yard.ping_pong(words.address, turns),
            "no flags": lambda: yard.ping_pong(words.address, 0),
        }

        def check(name: str, graph: Graph) -> None:
            if name == "allreduce":
                operands.replay("the choice for short vectors", graph, allreduce)

        times = bench.measure(ways, CALLS, check)
        allreduce()  # says so where a kernel gave up
    hops = [max(a - b, 1e-12) / (2 * turns) for a, b in zip(times["flags"], times["no flags"],
                                                            strict=True)]  # fmt: skip
    own = [a - b for a, b in zip(times["allreduce"], times["nothing"], strict=True)]
    cell = Cell("short allreduce", ranks, nbytes, "float32")
    yield cell.figure("hops", [a / b for a, b in zip(own, hops, strict=True)], Goal(most=2.0))
    yield cell.figure("us", [1e6 * seconds for seconds in times["allreduce"]])
    yield cell.figure("us of a launch", [1e6 * seconds for seconds in times["nothing"]])
    yield cell.figure("ns of a hop", [1e9 * seconds for seconds in hops])
