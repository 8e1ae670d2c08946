# SPDX-License-Identifier: Apache-2.0
"""NCCL with several ranks on this GPU, beside the same allreduces of ours: both as graphs.

NCCL 2.30 and later can do it, as an experiment: ``NCCL_MULTI_RANK_GPU_ENABLE=1``, and few enough
blocks for each rank that all of them fit, or it waits for ever. So this row is measured in a run of
its own: ``scripts/gpu_bench.sh --no-checks --rows nccl``. COLLECTIVES_NCCL names the library.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType

import collectives as cl
from bench.gpu.figures import Cell, Figure, Goal
from bench.gpu.operands import Operands
from bench.gpu.rounds import Enqueue, ratios
from bench.gpu.state import KIB, MIB, Bench
from bench.gpu.team import Team
from bench.gpu.yardsticks import Graph, Yardsticks
from collectives import nccl
from collectives.gpu_streams import follow, lead

SIZES = (256 * MIB, 64 * MIB, 16 * KIB, 4 * KIB)
LONG, SHORT = 64 * MIB, 16 * KIB
LEAST = {2: 1.8, 4: 2.2, 8: 2.4}  # times ours, of long ones
LEAST_SHORT = 2.0
BLOCKS = {2: 32, 4: 16, 8: 8}  # of a rank, at most: all ranks' are on the GPU at one time
ALLOWED = "NCCL_MULTI_RANK_GPU_ENABLE"
TIMEOUT_S = 30.0
OURS, THEIRS = "ours", "NCCL"


class Ranks(AbstractContextManager["Ranks"]):
    """Ranks of NCCL on one GPU, each with a stream of its own."""

    def __init__(self, yard: Yardsticks, ranks: int) -> None:
        self.yard = yard
        self._held = ExitStack()
        self.streams = tuple(self._stream() for _ in range(ranks))
        config, uid = nccl.Config(max_ctas=BLOCKS[ranks]), nccl.unique_id()
        with nccl.group():
            self.comms = [nccl.init_rank(ranks, uid, rank, config=config) for rank in range(ranks)]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.yard.synchronize()
        with nccl.group():
            for comm in self.comms:
                comm.close()
        self._held.close()

    def enqueue(self, operands: Operands) -> None:
        """Reduce; before and after what is on the yard's stream."""
        device, stream = self.yard.device, self.yard.stream
        lead(device, stream, self.streams)
        with nccl.group():
            for comm, x, out, own in zip(
                self.comms, operands.inputs, operands.outputs, self.streams, strict=True
            ):
                comm.allreduce(x, out, stream=own)
        follow(device, stream, self.streams)

    def _stream(self) -> int:
        made = ctypes.c_void_p()
        self.yard.call("stream", ctypes.byref(made))
        self._held.callback(self.yard.forget, "end_stream", int(made.value or 0))
        return int(made.value or 0)


def figures(bench: Bench) -> Iterator[Figure]:
    """Measure long and short allreduces of both."""
    os.environ.setdefault(ALLOWED, "1")
    sizes = bench.extent.sizes
    try:
        version = nccl.load().version
        for ranks in sorted(bench.extent.ranks):
            with Ranks(bench.yard, ranks) as theirs:
                for nbytes in [size for size in SIZES if size in sizes] or sizes:
                    if bench.over("the rest of NCCL's ranks on one GPU"):
                        return
                    yield from _cell(bench, theirs, ranks, nbytes, version)
    except (cl.UnsupportedError, nccl.NcclError) as error:
        bench.leave_out(f"NCCL with several ranks on one GPU: {error}")


def _cell(
    bench: Bench, theirs: Ranks, ranks: int, nbytes: int, version: object
) -> Iterator[Figure]:
    with Operands(bench.yard, ranks, nbytes, "float32") as operands, Team(ranks) as team:

        def ours() -> None:
            team.run(
                lambda comm: comm.allreduce(operands.inputs[comm.rank], operands.outputs[comm.rank])
            )

        ways: dict[str, Enqueue] = {OURS: ours, THEIRS: lambda: theirs.enqueue(operands)}
        for name, enqueue in ways.items():
            operands.poison()
            enqueue()
            operands.check(name)

        def check_replay(name: str, graph: Graph) -> None:
            operands.replay(name, graph, ways[name])

        times = bench.measure(ways, 4, check_replay)
    least = LEAST[ranks] if nbytes >= LONG else LEAST_SHORT if nbytes <= SHORT else None
    goal = None if least is None else Goal(least=least)
    cell = Cell(f"NCCL {version}", ranks, nbytes, "float32")
    yield cell.figure("times ours", ratios(times[THEIRS], times[OURS]), goal)
    yield cell.figure("us", [1e6 * seconds for seconds in times[THEIRS]])
    yield cell.figure("us of ours", [1e6 * seconds for seconds in times[OURS]])
