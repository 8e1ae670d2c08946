# SPDX-License-Identifier: Apache-2.0
"""Nothing outlives collrun, also where it is killed, or its ranks have started something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from collectives.keeper import Keeper
from tests.processes.jobs import ranks, start, until

pytestmark = pytest.mark.processes

SH = ("sh", "-c")


def test_nothing_outlives_collrun_not_even_helpers_of_the_ranks() -> None:
    with start("-n", 2, *SH, "sleep 60 & true") as job:
        job.communicate(timeout=20)
        assert job.returncode == 0
        assert until(lambda: ranks(job) == []) is True


def test_nothing_outlives_a_killed_collrun() -> None:
    job = start("-n", 3, "sleep", 60)
    assert until(lambda: len(ranks(job)) == 3)
    job.kill()
    job.communicate(timeout=20)
    assert until(lambda: ranks(job) == []) is True


def test_nothing_outlives_a_killed_collrun_not_even_helpers_of_the_ranks() -> None:
    job = start("-n", 2, *SH, "sleep 60 & sleep 60")
    assert until(lambda: len(ranks(job)) == 6), "two shells with two sleeps each"
    job.kill()
    job.communicate(timeout=20)
    assert until(lambda: ranks(job) == []) is True


def test_the_keeper_goes_with_its_job() -> None:
    with start("-n", 1, *SH, "cat /proc/$PPID/task/*/children") as job:
        printed, _ = job.communicate(timeout=20)
    children = [int(word) for word in printed.split()[1:]]
    assert len(children) == 2, "the keeper and the rank"
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_a_job_runs_without_a_keeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", Mock(side_effect=FileNotFoundError))
    keeper = Keeper()
    keeper.watch(1)
    keeper.dismiss()


# Its end comes at the worst moment: the rank runs, and collrun has done nothing more.
KILLED_AT_A_START = """
import os, pathlib, subprocess, sys, time
class Popen(subprocess.Popen):
    def __init__(self, *command, **options):
        super().__init__(*command, **options)
        if options.get("process_group") == 0:
            while not pathlib.Path(sys.argv[-1]).exists():
                time.sleep(0.001)
            os.kill(os.getpid(), 9)
from collectives import launch
subprocess.Popen = Popen
launch.main()
"""


def test_nothing_outlives_a_collrun_that_is_killed_while_it_starts_a_rank(tmp_path: Path) -> None:
    there = tmp_path / "there"
    script = "sleep 60 & echo > $0; sleep 60"
    job = start("-n", 1, *SH, script, there, command=(sys.executable, "-c", KILLED_AT_A_START))
    job.communicate(timeout=20)
    assert there.exists()
    assert until(lambda: ranks(job) == []) is True
