# SPDX-License-Identifier: Apache-2.0
"""Processes that enter and leave torch's default group: again at one address, or by just ending."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.extras

AGAIN = """
import torch
from torch import distributed as dist
import collectives.torch
for turn in range(12):
    dist.init_process_group("collectives")
    x = torch.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [2, 2]
    dist.barrier()
    dist.destroy_process_group()
"""
# The last callbacks may still be running when the interpreter ends.
FUTURES = """
import torch
from torch import distributed as dist
import collectives.torch
dist.init_process_group("collectives")
x = torch.ones(2)
for turn in range(30):
    dist.all_reduce(x, async_op=True).get_future().wait()
works = [dist.all_reduce(x, async_op=True).get_future() for _ in range(5)]
works[-1].wait()
"""
# One ends by an exception, the other waits for it.
ENDED = """
import torch
from torch import distributed as dist
import collectives.torch
dist.init_process_group("collectives")
other = dist.new_group()
x = torch.ones(2)
dist.all_reduce(x, group=other)
if dist.get_rank() == 1:
    raise KeyError("mine")
dist.all_reduce(x, group=other)
"""


def run(program: str) -> list[tuple[str, int]]:
    """Run a program on two ranks that meet by the environment; return its errors and codes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(2):
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": 2}
        environment = os.environ | {name: str(value) for name, value in where.items()}
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", program],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        ends = [(process.communicate(timeout=60)[1], process.returncode) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    return ends


def run_well(program: str) -> None:
    """Run a program that ends well."""
    ends = run(program)
    assert [code for _, code in ends] == [0, 0], ends


def test_groups_one_after_another_at_the_same_address() -> None:
    run_well(AGAIN)


@pytest.mark.parametrize("turn", range(3))
def test_an_end_without_a_farewell(turn: int) -> None:
    del turn  # it went wrong now and then only
    run_well(FUTURES)


def test_the_exception_by_which_a_program_ends_is_quoted() -> None:
    (errors, code), (_, other) = run(ENDED)
    assert (code, other) == (1, 1)
    assert "AbortedError: rank 1 aborted: its program ended by KeyError: 'mine'" in errors
