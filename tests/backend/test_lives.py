# SPDX-License-Identifier: Apache-2.0
"""Processes that enter and leave torch's default group: again at one address, or by just ending."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port

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

# As ENDED, in children of torch's.
SPAWNED = """
import os
import pathlib
import torch
from torch import distributed as dist, multiprocessing
import collectives.torch
def live(rank):
    store = dist.FileStore("store", 2)
    dist.init_process_group("collectives", store=store, rank=rank, world_size=2)
    dist.all_reduce(torch.ones(2))
    if rank == 1:
        raise KeyError("mine")
    try:
        dist.all_reduce(torch.ones(2))
    except RuntimeError as error:
        pathlib.Path("told").write_text(f"{type(error).__name__}: {error}")
if __name__ == "__main__":
    # A child that fails has its siblings terminated: let them end by themselves first.
    ranks = multiprocessing.spawn(live, nprocs=2, join=False)
    ranks.processes[0].join(150)
    assert ranks.processes[0].exitcode == 0
    ranks.processes[1].join(60)
"""
# One returns from its program without a farewell, the other waits for it.
LEFT = """
import torch
from torch import distributed as dist
import collectives.torch
dist.init_process_group("collectives")
dist.all_reduce(torch.ones(2))
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(2))
"""


def run(program: str) -> list[tuple[str, int]]:
    """Run a program on two ranks that meet by the environment; return its errors and codes."""
    port, ranks = free_port(), []
    for rank in range(2):
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": 2}
        environment = os.environ | {name: str(value) for name, value in where.items()}
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-c", program],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return [ended(process) for process in ranks]


def ended(process: subprocess.Popen[str]) -> tuple[str, int]:
    """Return what a process has printed and its code; one that hangs prints where."""
    try:
        return process.communicate(timeout=150)[1], process.returncode
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        return process.communicate()[1], process.returncode


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


def test_how_a_child_of_torchs_spawn_ends_is_told(tmp_path: Path) -> None:
    (tmp_path / "spawned.py").write_text(SPAWNED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "spawned.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    why = "rank 1 aborted: its program ended by KeyError: 'mine'"
    assert (tmp_path / "told").read_text(encoding="utf-8") == f"AbortedError: {why}"


def test_who_leaves_its_groups_open_has_not_died() -> None:
    (errors, _), (_, code) = run(LEFT)
    assert code == 0
    assert "PeerLostError" in errors
    assert "closed its communicator after its call #1" in errors
