# SPDX-License-Identifier: Apache-2.0
"""libnccl.so.2 on two hosts of two ranks, which meet by an id and then speak TCP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.processes.jobs import ROOT, environment

pytestmark = [pytest.mark.hosts]

PATIENCE = 60.0  # seconds
ABORTED = -6


def ranks(
    hosts: Hosts, program: str, folder: Path, env: Mapping[str, str] | None = None
) -> list[tuple[int, str]]:
    """Run a program of nccl_rank.py, two ranks a host; return how each ended and what it said."""
    command = [sys.executable, "-m", "tests.processes.nccl_rank", program]
    started = [
        hosts[rank // 2].start(
            [*command, str(rank), "4", str(folder)],
            env=environment(env), cwd=ROOT, stderr=subprocess.PIPE,
        )
        for rank in range(4)
    ]  # fmt: skip
    said = [process.communicate(timeout=PATIENCE)[1] for process in started]
    return [(process.returncode, words) for process, words in zip(started, said, strict=True)]


def test_all_calls(hosts: Hosts, tmp_path: Path) -> None:
    for rank, (status, said) in enumerate(
        ranks(hosts, "collectives", tmp_path, {"NCCL_DEBUG": "INFO"})
    ):
        assert status == 0, said
        assert f"rank {rank} of 4: tcp" in said


def test_a_rank_that_is_killed_is_told_on_both_hosts(hosts: Hosts, tmp_path: Path) -> None:
    ended = ranks(hosts, "death", tmp_path)
    assert [status for status, _ in ended] == [0, ABORTED, 0, 0], ended


def test_a_loopback_is_refused_by_name(hosts: Hosts, tmp_path: Path) -> None:
    """Rank 0's own host reaches it there, the other one does not, and gives up in time."""
    settings = {"NCCL_SOCKET_IFNAME": "lo", "COLLECTIVES_TIMEOUT": "3"}
    for rank, (status, said) in enumerate(ranks(hosts, "collectives", tmp_path, settings)):
        assert status == 1
        assert f"rank {rank} of 4 has not met the others at 127.0.0.1" in said
