# SPDX-License-Identifier: Apache-2.0
"""Tensors on GPUs: torch's streams, events and tensors have stand-ins on the emulated GPU.

Two ranks share a GPU, or have one each. With torch itself on a GPU: tests/gpu/test_processes.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.backend.teams import Team, team
from tests.ports import free_port
from tests.processes.jobs import ROOT, emulated_gpu

pytestmark = pytest.mark.extras

WAYS = {"one for all": False, "one for each": True}


@pytest.fixture(scope="module", params=[*WAYS])
def own(request: pytest.FixtureRequest) -> bool:
    """Whether each rank has a GPU of its own."""
    return WAYS[request.param]


@pytest.fixture(scope="module")
def ranks(own: bool) -> Iterator[Team]:
    """Two ranks with the emulated GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLLECTIVES_CUDA_LIBRARY", str(emulated_gpu()))
        with team("collectives", 2) as made:
            yield made


def test_every_collective_as_of_tensors_in_cpu_memory(ranks: Team, own: bool) -> None:
    assert ranks.run("gpus.kinds", own) == ["launch" if own else "host"] * 2


def test_a_wait_orders_the_current_stream(ranks: Team, own: bool) -> None:
    found = ranks.run("gpus.waits", own)
    if not own:  # a launch of several processes goes on by itself
        assert found == [[False, False]] * 2


@pytest.mark.parametrize("program", ["then", "blocks", "messages", "beside"])
def test_futures_blocks_messages_and_both_kinds(ranks: Team, own: bool, program: str) -> None:
    ranks.run(f"gpus.{program}", own)


def test_errors_stay_errors(ranks: Team, own: bool) -> None:
    for at_once, later, strided, mixed in ranks.run("gpus.refused", own):
        for kind, words in (at_once, later):
            assert kind == "MismatchError"
            assert "all_reduce of 4 float32" in words
        assert strided[0] == "InvalidArgumentError"
        assert "strided memory of a GPU" in strided[1]
        assert mixed[0] == "MismatchError"
        assert "on GPUs" in mixed[1]


PROGRAM = """
import sys
import torch
import collectives.torch
from torch import distributed as dist
dist.init_process_group(sys.argv[1])
assert isinstance(dist.group.WORLD, collectives.torch.CollectivesGroup)
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [2, 2, 2]
dist.all_reduce(x, group=dist.new_group())
assert x.tolist() == [4, 4, 4]
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "backend", ["collectives", "cpu:gloo,cuda:collectives", "cpu:collectives,cuda:collectives"]
)
def test_names_of_backends_by_device(backend: str) -> None:
    job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, backend],
            cwd=ROOT,
            env={**os.environ, **job, "RANK": str(rank)},
        )
        for rank in range(2)
    ]
    assert [process.wait(100) for process in processes] == [0, 0]
