# SPDX-License-Identifier: Apache-2.0
"""Allreduce of all lengths, in times of what its bytes take to move, of a kernel by hand, of peers.

B is what a copy on the GPU moves in a second, bytes read and bytes written counted, in every round.
The bytes of a plan are counted (bench.gpu.moved); no plan can do with fewer than 2 p n.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.gpu.figures import Cell, Figure, Goal
from bench.gpu.moved import moved
from bench.gpu.operands import Operands
from bench.gpu.peers import CUPY, TORCH, MissingError, peer
from bench.gpu.rounds import Enqueue, Times, ratios
from bench.gpu.state import COPY, MIB, Bench
from bench.gpu.team import Team
from bench.gpu.yardsticks import Graph

# Ours, by name: algorithm and mode. The first is the least that can be moved.
FUSED, TWO_SHOT, RING, HALVING = "fused", "two-shot", "ring", "halving"
OURS = {
    FUSED: ("direct_two_shot", "push"),
    TWO_SHOT: ("direct_two_shot", "pull"),
    RING: ("ring", "push"),
    HALVING: ("recursive_halving", "push"),
}
BY_HAND = "by hand"
LONG, MIDDLE = 256 * MIB, 64 * MIB  # from where on the goals are asked for


def figures(bench: Bench) -> Iterator[Figure]:
    """Measure all cells, as far as time and memory go."""
    for nbytes in bench.extent.sizes:
        for ranks in bench.extent.ranks:
            for dtype in ("float32", "bfloat16"):
                what = f"allreduce of {nbytes} bytes of {dtype}, {ranks} ranks"
                if bench.over("the rest of allreduce, from the " + what):
                    return
                if _fits(bench, ranks, nbytes, what):
                    yield from _cell(bench, ranks, nbytes, dtype)


def _fits(bench: Bench, ranks: int, nbytes: int, what: str) -> bool:
    free = int(bench.yard.facts()["free"])
    if 2 * ranks * nbytes < 0.9 * free:
        return True
    bench.leave_out(f"{what}: the GPU has {free} bytes free")
    return False


def _cell(bench: Bench, ranks: int, nbytes: int, dtype: str) -> Iterator[Figure]:
    with Operands(bench.yard, ranks, nbytes, dtype) as operands, Team(ranks) as team:
        ways: dict[str, Enqueue] = {COPY: bench.copy}
        ways |= {name: _ours(team, operands, *how) for name, how in OURS.items()}
        ways |= _others(bench, operands)
        for name, enqueue in ways.items():
            operands.poison()
            enqueue()
            if name != COPY:
                operands.check(name)

        def check(name: str, graph: Graph) -> None:
            if name != COPY:
                operands.replay(name, graph, ways[name])

        times = bench.measure(ways, 4 if ranks * nbytes >= MIDDLE else 16, check)
        ways[FUSED]()  # says so where a kernel gave up
        operands.check("what was measured")
        yield from _of_times(bench, Cell("", ranks, nbytes, dtype), times)


def _ours(team: Team, operands: Operands, algorithm: str, mode: str) -> Enqueue:
    inputs, outputs = operands.inputs, operands.outputs

    def enqueue() -> None:
        team.run(
            lambda comm: comm.allreduce(
                inputs[comm.rank], outputs[comm.rank], algorithm=algorithm, mode=mode
            )
        )

    return enqueue


def _others(bench: Bench, operands: Operands) -> dict[str, Enqueue]:
    if operands.dtype != "float32":
        return {}
    ways: dict[str, Enqueue] = {BY_HAND: lambda: bench.yard.fused(operands.vectors)}
    for name in (CUPY, TORCH):
        try:
            ways[name] = peer(name, operands)
        except MissingError as error:
            bench.leave_out(str(error))
    return ways


def _of_times(bench: Bench, cell: Cell, times: Times) -> Iterator[Figure]:
    """Return the figures of one length; bandwidth beside each."""
    ranks, nbytes = cell.ranks, cell.nbytes
    bandwidth = bench.bandwidth(times)
    for name, (algorithm, mode) in OURS.items():
        floor = float(moved(algorithm, ranks, mode)) * nbytes
        most = 1.10 if name == FUSED and ranks < 8 else 1.15
        goal = Goal(most=most) if nbytes >= LONG else None
        shares = [seconds * b / floor for seconds, b in zip(times[name], bandwidth, strict=True)]
        here = Cell(f"allreduce, {name}", ranks, nbytes, cell.dtype)
        yield here.figure(f"times its {moved(algorithm, ranks, mode)} n bytes at B", shares, goal)
        yield here.figure("us", [1e6 * seconds for seconds in times[name]])
    beside = {BY_HAND: Goal(most=1.03), CUPY: Goal(most=1.05)}
    here = Cell(f"allreduce, {FUSED}", ranks, nbytes, cell.dtype)
    for name, wanted in beside.items():
        if name in times:
            goal = wanted if nbytes >= MIDDLE else None
            yield here.figure(f"times {name}", ratios(times[FUSED], times[name]), goal)
    if TORCH in times:
        goal = Goal(least=2.0) if ranks == 8 and nbytes == LONG else None
        yield here.figure(f"{TORCH}, times fused", ratios(times[TORCH], times[FUSED]), goal)
    yield Cell("B", ranks, nbytes, cell.dtype).figure("GB/s", [b / 1e9 for b in bandwidth])
