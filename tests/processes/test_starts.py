# SPDX-License-Identifier: Apache-2.0
"""Ranks meet, or are told why not; and when they part, nothing is left of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collectives.environment import JOB, RANK, SIZE, TIMEOUT
from tests.patience import promised
from tests.processes.jobs import (
    COLLRUN,
    ROOT,
    collrun,
    environment,
    found,
    processes,
    read,
    read_rank,
    until,
)

pytestmark = pytest.mark.processes


def alone(program: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one rank without collrun."""
    command = [sys.executable, "-m", "tests.processes.rank", program, str(folder)]
    return subprocess.run(
        command, cwd=ROOT, env=environment(variables), capture_output=True, text=True, timeout=60
    )


def test_the_default_communicator_needs_no_init(tmp_path: Path) -> None:
    assert found(3, "starts.total", tmp_path) == [3.0] * 3


def test_jobs_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    folders = [tmp_path / str(i) for i in range(3)]
    jobs = []
    for folder in folders:
        folder.mkdir()
        command = [*COLLRUN, "-n", "2", "-m", "tests.processes.rank", "starts.total", str(folder)]
        jobs.append(subprocess.Popen(command, cwd=ROOT, env=environment()))
    assert [job.wait(60) for job in jobs] == [0, 0, 0]
    assert [read(folder, 2) for folder in folders] == [[2.0, 2.0]] * 3


def test_ranks_may_meet_again(tmp_path: Path) -> None:
    assert found(3, "starts.again", tmp_path) == [[3.0] * 5] * 3


def test_threads_may_meet_and_end(tmp_path: Path) -> None:
    assert found(3, "starts.threads_meet", tmp_path) == [[3.0] * 3] * 3


def test_a_program_that_raises_tells_all_why() -> None:
    done = collrun("-n", 3, "-m", "tests.processes.rank", "starts.raise_error", "/nowhere")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "[1] ValueError: learning rate is nan" in done.stderr
    for rank in (0, 2):
        assert (
            f"[{rank}] collectives.errors.AbortedError: rank 1 aborted: "
            "its program ended by ValueError: learning rate is nan" in done.stderr
        )


def test_a_program_that_ends_too_soon_is_named(tmp_path: Path) -> None:
    told = found(3, "starts.end_early", tmp_path)
    for rank in (0, 2):
        assert told[rank]["rank"] == 1
        assert re.search(r"rank 1 .* closed its communicator", told[rank]["text"])


def test_a_rank_that_does_not_come_is_named(tmp_path: Path) -> None:
    variables = {RANK: "0", SIZE: "2", JOB: f"test.{os.getpid()}", TIMEOUT: "0.3"}
    assert alone("starts.wait_in_vain", tmp_path, **variables).returncode == 0
    told = read_rank(tmp_path, 0)
    assert told["error"] == "CollectiveTimeoutError"
    assert "rank 1" in told["text"]
    assert told["seconds"] < 5


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"MASTER_ADDR": "127.0.0.1"}, "MASTER_ADDR is '127.0.0.1'"),
        ({"MASTER_ADDR": "head", "LOCAL_WORLD_SIZE": "2"}, "LOCAL_WORLD_SIZE is WORLD_SIZE"),
    ],
)
@pytest.mark.parametrize("rank", ["0", "1"])
def test_why_ranks_were_sought_on_this_machine_only_is_told(
    more: dict[str, str], words: str, rank: str
) -> None:
    by_hand = {"RANK": rank, "WORLD_SIZE": "2", "MASTER_PORT": str(20_000 + os.getpid() % 20_000)}
    command = [sys.executable, "-c", "import collectives as cl; cl.init(timeout=0.3)"]
    env = environment(by_hand | more)
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert "CollectiveTimeoutError" in done.stderr
    assert f"it looked on this machine only, as {words}" in done.stderr


def test_rank_0_that_does_not_come_is_named(tmp_path: Path) -> None:
    variables = {RANK: "1", SIZE: "2", JOB: f"test.{os.getpid()}", TIMEOUT: "0.3"}
    assert alone("starts.wait_in_vain", tmp_path, **variables).returncode == 0
    told = read_rank(tmp_path, 1)
    assert told["error"] == "CollectiveTimeoutError"
    assert "rank 0" in told["text"]


@pytest.mark.parametrize("rank", [0, 1])
def test_ctrl_c_ends_the_meeting(tmp_path: Path, rank: int) -> None:
    variables = {RANK: str(rank), SIZE: "2", JOB: f"test.{os.getpid()}"}
    done = alone("starts.interrupted_meeting", tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert read_rank(tmp_path, rank) < promised(0.2)


def test_a_late_comer_of_an_older_attempt_is_refused(tmp_path: Path) -> None:
    command = ("-n", 2, "--attempt", 3, "-m", "tests.processes.rank", "starts.late_comer")
    assert collrun(*command, tmp_path).returncode == 0
    told = read(tmp_path, 2)
    assert told[1].startswith("BootstrapError")
    assert "attempt 3" in told[1]
    assert "attempt 0" in told[1]
    assert told[0].startswith("CollectiveTimeoutError")


def test_a_stopped_rank_is_waited_for(tmp_path: Path) -> None:
    assert found(3, "starts.stopped", tmp_path) == [3.0] * 3


def test_a_full_shared_memory_is_no_matter(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small /dev/shm")
    program = [*COLLRUN, "-n", "4", "-m", "tests.processes.rank", "starts.total", str(tmp_path)]
    script = (
        'mount -t tmpfs -o size=1m none /dev/shm && "$@"; code=$?; '
        'ls -A /dev/shm >"$0/left"; exit $code'
    )
    command = ["unshare", "--mount", "sh", "-c", script, str(tmp_path), *program]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this root may not mount")
    assert done.returncode == 0, done.stderr
    assert read(tmp_path, 4) == [4.0] * 4
    assert (tmp_path / "left").read_text() == ""


@pytest.mark.parametrize("target", ["collrun", "all ranks at once"])
def test_nothing_is_left_after_a_kill(tmp_path: Path, target: str) -> None:
    def files() -> set[str]:
        return {str(p) for place in ("/dev/shm", "/tmp") for p in Path(place).glob("*coll*")}

    before, name = files(), f"left.{os.getpid()}.{target[:3]}"
    variables = {"TEST_JOB": name, "TMPDIR": str(tmp_path)}
    command = [*COLLRUN, "-n", "3", "-m", "tests.processes.rank", "starts.until_killed", "/nowhere"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as job:
        assert job.stdout is not None
        pids = [int(job.stdout.readline().split()[-1]) for _ in range(3)]
        job_name = _variable(pids[0], JOB)
        for pid in [job.pid] if target == "collrun" else pids:
            os.kill(pid, signal.SIGKILL)
        assert job.wait(20) in (-signal.SIGKILL, 128 + signal.SIGKILL)
        assert until(lambda: processes("TEST_JOB", name) == []) is True
    assert files() == before
    assert list(tmp_path.iterdir()) == []
    # A process closes its sockets after it has given its memory back, where its name is read.
    assert until(lambda: job_name not in Path("/proc/net/unix").read_text()) is True


def test_ctrl_c_on_collrun_ends_blocked_ranks_soon() -> None:
    best = 60.0
    for _ in range(3):
        command = [*COLLRUN, "-n", "3", "-m", "tests.processes.rank", "starts.until_killed", "/no"]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as job:
            assert job.stdout is not None
            for _ in range(3):
                job.stdout.readline()
            begin = time.monotonic()
            job.send_signal(signal.SIGINT)
            _, errors = job.communicate(timeout=20)
            best = min(best, time.monotonic() - begin)
        assert job.returncode in (1, 128 + signal.SIGINT)
        assert "KeyboardInterrupt" in errors
    assert best < promised(1.5)  # 0.2 s for the call, the rest for the interpreters to end


def _variable(pid: int, name: str) -> str:
    variables = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next(v.partition("=")[2] for v in variables if v.startswith(f"{name}="))
