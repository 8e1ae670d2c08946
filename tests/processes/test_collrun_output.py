# SPDX-License-Identifier: Apache-2.0
"""collrun and standard output that cannot be written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.processes.jobs import COLLRUN, ROOT, environment, ranks, start, until
from tests.processes.test_collrun_hosts import SSH

pytestmark = pytest.mark.processes

COLLBENCH = (sys.executable, "-m", "collectives.cli")
FULL = "cannot write to standard output: No space left on device"
CLOSED = "cannot write to standard output: it is closed"


def shell(script: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell, as "$@"."""
    return subprocess.run(
        ["bash", "-c", script, "bash", *command],
        cwd=ROOT,
        env=environment({"COLLECTIVES_SSH": SSH}),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(("where", "why"), [(">&-", CLOSED), (">/dev/full", FULL)])
@pytest.mark.parametrize(
    "command",
    [
        (*COLLRUN, "-n", "2", "echo", "a"),
        (*COLLRUN, "--hosts", "a,b", "echo", "a"),
        (*COLLRUN, "--help"),
        (*COLLBENCH, "list"),
        (*COLLBENCH, "draw", "ring"),
        (*COLLBENCH, "--version"),
    ],
    ids=lambda command: " ".join(command[2:]),
)
def test_unusable_standard_output_is_one_sentence(
    where: str, why: str, command: tuple[str, ...]
) -> None:
    done = shell(f'"$@" {where}', *command)
    name = "collrun" if command[: len(COLLRUN)] == COLLRUN else "collbench"
    assert (done.returncode, done.stderr) == (1, f"{name}: {why}\n")


def test_a_job_whose_output_cannot_be_written_is_ended() -> None:
    with open("/dev/full", "w") as full, start("-n", 2, "yes", stdout=full) as job:
        assert job.wait(30) == 1
        assert job.stderr is not None
        assert job.stderr.read() == f"collrun: {FULL}\n"
        assert until(lambda: ranks(job) == []) is True


def test_ranks_outlive_closed_errors_and_input() -> None:
    script = "echo out; echo err >&2; exit 3"
    done = shell('"$@" <&- 2>&-', *COLLRUN, "-n", "2", "--stdin", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (3, "[0] out\n[1] out\n", "")


def test_an_exit_code_outlives_errors_that_cannot_be_written() -> None:
    done = shell('"$@" 2>/dev/full', *COLLRUN, "-n", "1", "sh", "-c", "exit 5")
    assert done.returncode == 5
