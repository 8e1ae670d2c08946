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

LOST = """
import os, sys, time
from datetime import timedelta
import torch
from torch import distributed as dist
import collectives as cl
import collectives.torch

dist.init_process_group("collectives", timeout=timedelta(seconds=30))
rank, x, y = dist.get_rank(), torch.ones(300), torch.empty(300)
work = dist.isend(x, 1 - rank)
dist.recv(y, 1 - rank)
work.wait()
if rank == 1:
    if sys.argv[1] == "leaves":
        dist.destroy_process_group()
    os._exit(0)
time.sleep(1)
begin = time.monotonic()
try:
    dist.recv(y, None if sys.argv[1] == "any" else 1)
except cl.PeerLostError as error:
    seconds = time.monotonic() - begin
    sys.stdout.write(f"rank {error.rank} is lost\\n" if seconds < 5 else f"after {seconds} s")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("how", ["dies", "leaves", "any"])
def test_a_receive_that_begins_when_its_sender_is_gone(
    hosts: Hosts, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "program.py"
    path.write_text(LOST)
    secret = tmp_path / "secret"
    secret.write_text("ab" * 32)
    secret.chmod(0o600)
    ranks = [
        hosts[rank].start(
            [sys.executable, str(path), how],
            env=environment(
                {
                    "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": hosts[0].address,
                    "MASTER_PORT": "29518", "COLLECTIVES_SECRET_FILE": str(secret),
                }
            ),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]  # fmt: skip
    ended = [rank.communicate(timeout=60) for rank in ranks]
    assert ended[0][0] == "rank 1 is lost\n", ended


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
