# SPDX-License-Identifier: Apache-2.0
"""The backend of torch.distributed on two hosts of two ranks, started by torchrun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.processes.jobs import ROOT, environment

pytestmark = [pytest.mark.extras, pytest.mark.hosts]

PROGRAM = """
import sys
import torch
from torch import distributed as dist
import collectives.torch

dist.init_process_group("collectives")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
network = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(300, 300))
network(torch.full((2, 300), rank + 1.0)).sum().backward()
assert torch.allclose(network.module.weight.grad, torch.full((300, 300), size + 1.0))

pairs = dist.new_group([0, size - 1])
x = torch.arange(100_000.0) + rank
if rank in (0, size - 1):
    y = x.clone()
    dist.all_reduce(y, group=pairs)
    assert torch.equal(y, 2 * torch.arange(100_000.0) + size - 1)
got = torch.empty_like(x)
after, before = (rank + 1) % size, (rank - 1) % size
for work in dist.batch_isend_irecv(
    [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, got, before)]
):
    work.wait()
assert torch.equal(got, torch.arange(100_000.0) + before)
parts = list(torch.empty(size, 3).unbind())
dist.all_gather(parts, torch.full((3,), float(rank)))
assert [part[0].item() for part in parts] == list(range(size))
found = [None] * size
dist.all_gather_object(found, {"rank": rank})
assert found == [{"rank": number} for number in range(size)]
if rank == 0:
    sources = {dist.recv(torch.empty(2)) for _ in range(size - 1)}
    assert sources == set(range(1, size))
else:
    dist.send(torch.ones(2), 0)
dist.barrier()
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} is fine\\n")
"""


def test_two_hosts_of_two_ranks(hosts: Hosts, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
    words += ["--nproc-per-node", "2", "--rdzv-backend", "static", "--rdzv-id", "job"]
    words += ["--rdzv-endpoint", f"{hosts[0].address}:29517"]
    agents = [
        host.start(
            [*words, "--node-rank", str(number), str(path)],
            env=environment({"OMP_NUM_THREADS": "1"}),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number, host in enumerate([hosts[0], hosts[1]])
    ]
    with hosts[1].counted() as traffic:
        ended = [agent.communicate(timeout=90) for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], ended
    lines = sorted(line for printed, _ in ended for line in printed.splitlines())
    assert lines == [f"rank {rank} is fine" for rank in range(4)]
    assert traffic.sent_bytes > 300 * 300 * 4
