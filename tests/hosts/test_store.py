# SPDX-License-Identifier: Apache-2.0
"""Communicator.from_store: ranks on several hosts share a TCPStore of torch that rank 0 keeps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.processes.jobs import ROOT, environment

pytestmark = [pytest.mark.extras, pytest.mark.hosts]

PLACES = (0, 1, 1)  # the hosts of the ranks
PORT = 29519
PROGRAM = """
import os, sys
from datetime import timedelta
import collectives as cl, numpy as np
from torch.distributed import PrefixStore, TCPStore

address, port, rank, secret = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
patience = timedelta(seconds=60)
store = TCPStore(address, port, 3, is_master=rank == 0, timeout=patience, wait_for_workers=False)

def met(store, place, ranks):
    with cl.Communicator.from_store(store, place, len(ranks), timeout=60) as comm:
        total = comm.allreduce(np.arange(100_000) + rank)
        assert np.array_equal(total, len(ranks) * np.arange(100_000) + sum(ranks))
        hosts = [place.host for place in comm.topology(measure=False).places]
        sys.stdout.write(f"{comm.rank} {comm.transport} {' '.join(hosts)}\\n")

for _ in range(2):
    met(store, rank, [0, 1, 2])
if rank != 1:  # two of them, in the other order
    met(PrefixStore("ends", store), 0 if rank == 2 else 1, [0, 2])
if rank != 0:  # two of another host than the store's
    met(PrefixStore("last", store), rank - 1, [1, 2])
if rank == 1:
    os.environ["COLLECTIVES_SECRET_FILE"] = secret
try:
    met(store, rank, [0, 1, 2])
except cl.InvalidArgumentError as error:
    assert "COLLECTIVES_SECRET_FILE" in str(error), error
    sys.stdout.write("refused\\n")
os.environ["COLLECTIVES_SECRET_FILE"] = secret
met(store, rank, [0, 1, 2])  # last, as rank 0 serves the others until then
"""


def test_ranks_meet_in_torchs_store(hosts: Hosts, tmp_path: Path) -> None:
    """Again and again, all or some; with the store's secret, a file's, and one that some have."""
    pytest.importorskip("torch")
    secret = tmp_path / "secret"
    secret.write_text("5a" * 32)
    secret.chmod(0o600)
    words = [sys.executable, "-c", PROGRAM, hosts[0].address, str(PORT)]
    with hosts[1].counted() as traffic:
        ranks = [
            hosts[place].start(
                [*words, str(rank), str(secret)],
                env=environment({"OMP_NUM_THREADS": "1"}),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for rank, place in enumerate(PLACES)
        ]
        ended = [rank.communicate(timeout=90) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], ended
    all_three, ends, pair = "tcp host0 host1 host1", "tcp host1 host0", "memory host1 host1"
    assert [printed.splitlines() for printed, _ in ended] == [
        [f"0 {all_three}"] * 2 + [f"1 {ends}", "refused", f"0 {all_three}"],
        [f"1 {all_three}"] * 2 + [f"0 {pair}", "refused", f"1 {all_three}"],
        [f"2 {all_three}"] * 2 + [f"0 {ends}", f"1 {pair}", "refused", f"2 {all_three}"],
    ]
    assert traffic.sent_bytes > 4 * 100_000 * 8 / 2
