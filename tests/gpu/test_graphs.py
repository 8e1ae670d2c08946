# SPDX-License-Identifier: Apache-2.0
"""Collectives that are captured once and replayed: each replay reads what lies there then."""

from __future__ import annotations

import numpy as np
import pytest

import collectives as cl
from bench.gpu.arrays import GpuArray, GpuMemory
from bench.gpu.operands import Operands
from bench.gpu.rounds import captured
from bench.gpu.team import Team
from bench.gpu.yardsticks import Yardsticks

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]

HOW = (("direct_two_shot", "push"), ("ring", "staged"), ("ring", "pull"),
       ("direct_one_shot", "inline"))  # fmt: skip
COUNT = 1000


@pytest.mark.parametrize(("algorithm", "mode"), HOW)
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_replays_reduce_what_lies_there(
    ranks: int, algorithm: str, mode: str, yard: Yardsticks
) -> None:
    memory = [GpuMemory(yard, 8 * COUNT) for _ in range(ranks)]
    inputs = [GpuArray(mine, COUNT, "float32") for mine in memory]
    outputs = [GpuArray(mine, COUNT, "float32", 4 * COUNT) for mine in memory]
    with Team(ranks) as team:

        def allreduce(comm: cl.Communicator) -> None:
            rank = comm.rank
            comm.allreduce(inputs[rank], outputs[rank], algorithm=algorithm, mode=mode)

        team.run(allreduce)  # takes the memory that it needs

        def enqueue() -> None:
            team.run(allreduce)

        graph = captured(yard, enqueue, 3)
        for turn in range(4):
            for rank, (x, out) in enumerate(zip(inputs, outputs, strict=True)):
                yard.write(x.address, np.arange(COUNT, dtype="f4") + turn * (rank + 1))
                out.poison()
            yard.synchronize()
            graph.seconds(2)
            wanted = np.arange(COUNT) * ranks + turn * ranks * (ranks + 1) / 2
            for out in outputs:
                assert (out.host() == wanted).all()
            team.run(allreduce)  # beside replays, on the same clock
        graph.close()


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_the_sum_by_hand_is_right(ranks: int, yard: Yardsticks) -> None:
    for nbytes in (16, 4096 * 4 + 16, 1 << 22):
        with Operands(yard, ranks, nbytes, "float32") as operands:
            operands.poison()
            yard.fused(operands.vectors)
            operands.check("by hand")
            wanted = np.sum([x.host().astype("f8") for x in operands.inputs], axis=0)
            for out in operands.outputs:
                assert np.abs(out.host() - wanted).max() < 1e-5


def test_a_flag_comes_and_goes(yard: Yardsticks) -> None:
    words = GpuArray(GpuMemory(yard, 256), 32, "uint64")
    graph = captured(yard, lambda: yard.ping_pong(words.address, 10), 2)
    graph.seconds(3)
    graph.close()
    assert words.host()[[0, 16]].tolist() == [60, 60]


def test_wrong_elements_are_counted(yard: Yardsticks) -> None:
    for dtype in ("float32", "bfloat16"):
        with Operands(yard, 3, 400, dtype) as operands:
            operands.poison()
            assert yard.wrong(operands.vectors) == operands.vectors.n * 3
            wide = [x.host().astype("f8") for x in operands.inputs]
            assert all(np.abs(x).max() <= 1 and np.abs(x).mean() > 0.3 for x in wide)
            total = sum(wide[1:], wide[0])
            for out in operands.outputs:
                yard.write(out.address, total.astype(out.dtype))
            assert yard.wrong(operands.vectors) == 0
            total[7] += 0.1
            yard.write(operands.outputs[1].address, total.astype(operands.outputs[1].dtype))
            assert yard.wrong(operands.vectors) == 1
