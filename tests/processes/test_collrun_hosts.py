# SPDX-License-Identifier: Apache-2.0
"""collrun --hosts: hosts that are this machine, behind a stand-in for ssh."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from collectives.remote.hosts import Share, shares
from tests.processes.jobs import COLLRUN, ROOT, environment, processes
from tests.processes.test_collrun import SLOW_TO_END

pytestmark = pytest.mark.processes

SSH = f"{sys.executable} -S -E {Path(__file__).with_name('fake_ssh.py')}"
SH = ("sh", "-c")
SUM = (
    "import collectives as cl, numpy as np\n"
    "with cl.init(timeout=20) as comm:\n"
    "    print(comm.rank, comm.allreduce(np.ones(2) + comm.rank).tolist())\n"
)


class Started:
    """A collrun that runs; its processes are known by TEST_JOB."""

    def __init__(self, *arguments: object, ssh: str = SSH, **variables: str) -> None:
        self.name = f"{os.getpid()}.{time.monotonic_ns()}"
        self.process = subprocess.Popen(
            [*COLLRUN, "--env", "TEST_JOB", *map(str, arguments)],
            cwd=ROOT,
            env=environment({"TEST_JOB": self.name, "COLLECTIVES_SSH": ssh, **variables}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def others(self) -> Sequence[int]:
        """Return the processes of the job, without collrun, its ssh and its agents."""
        found = []
        for pid in processes("TEST_JOB", self.name):
            with contextlib.suppress(ProcessLookupError):  # they end while we look
                if os.getsid(pid) != os.getsid(0):
                    found.append(pid)
        return found

    def ended(self, timeout: float = 40) -> tuple[int, str, str]:
        """Wait for the end; return exit code, output and errors. No rank must be left."""
        printed, complaint = self.process.communicate(timeout=timeout)
        assert until(lambda: not self.others()), "ranks were left behind"
        return self.process.returncode, printed, complaint

    def line(self) -> str:
        """Wait for a line of output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()


def until(met: Callable[[], Any], seconds: float = 10) -> Any:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not (value := met()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return value


def run(*arguments: object, ssh: str = SSH, **variables: str) -> tuple[int, str, str]:
    return Started(*arguments, ssh=ssh, **variables).ended()


def test_who_failed_because_of_another_is_not_named() -> None:
    code, _, complaint = run("--hosts", "a,b", sys.executable, "-c", SLOW_TO_END)
    assert code == 3
    assert "AbortedError" in complaint
    assert "collrun: rank 1 (process " in complaint


def test_ranks_of_all_hosts_get_their_place_and_meet() -> None:
    code, printed, complaint = run("--hosts", "a:2,b", sys.executable, "-c", SUM)
    assert (code, complaint) == (0, "")
    assert sorted(printed.splitlines()) == [f"[{r}] {r} [6.0, 6.0]" for r in range(3)]


@pytest.mark.extras
def test_output_keeps_its_stream_and_codes_and_settings_arrive() -> None:
    script = "echo out $COLLECTIVES_RANK $COLLECTIVES_TIMEOUT $PWD; echo err >&2; exit 3"
    code, printed, complaint = run(
        "--hosts", "a", "-n", 1, "--attempt", 2, *SH, script, COLLECTIVES_TIMEOUT="7"
    )
    assert (code, printed) == (3, f"[0] out 0 7 {ROOT}\n")
    lines = complaint.splitlines()
    assert lines[0] == "[0] err"
    assert lines[1].startswith("collrun: rank 0 (process ")
    assert lines[1].endswith(" on a) ended with exit code 3")
    assert run("--no-prefix", "--hosts", "a", "echo", "x")[1] == "x\n"


def test_a_rank_that_fails_ends_all_others() -> None:
    script = "[ $COLLECTIVES_RANK = 1 ] && exit 5; exec sleep 100"
    begun = time.monotonic()
    code, _, complaint = run("--grace", 0.2, "--hosts", "a:2,b", *SH, script)
    assert code == 5
    assert "on a) ended with exit code 5; ended after it: rank 0, 2" in complaint
    assert time.monotonic() - begun < 20


@pytest.mark.extras
def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    code, _, complaint = run("--hosts", "a", "bash", "-c", "kill -40 $$")
    assert code == 128 + 40
    assert "on a) was ended by signal 40" in complaint


@pytest.mark.extras
def test_ranks_that_do_not_heed_sigterm_are_killed() -> None:
    script = "trap '' TERM; [ $COLLECTIVES_RANK = 1 ] && exit 5; while :; do sleep 0.1; done"
    code, _, complaint = run("--grace", 0.2, "--hosts", "a,b", *SH, script)
    assert code == 5
    assert "ended after it: rank 0" in complaint


@pytest.mark.extras
@pytest.mark.parametrize("again", [False, True])
def test_ctrl_c_ends_ranks_everywhere(again: bool) -> None:
    script = ("trap '' INT; " if again else "") + "echo here; while :; do sleep 0.1; done"
    job = Started("--hosts", "a,b", *SH, script)
    assert {job.line() for _ in range(2)} == {"[0] here\n", "[1] here\n"}
    job.process.send_signal(signal.SIGINT)
    if again:
        time.sleep(0.2)
        assert job.process.poll() is None
        job.process.send_signal(signal.SIGINT)
    code, _, complaint = job.ended()
    assert code == 128 + (signal.SIGKILL if again else signal.SIGINT), complaint


def test_a_killed_collrun_leaves_no_rank() -> None:
    job = Started("--hosts", "a,b", *SH, "echo here; exec sleep 100")
    assert {job.line() for _ in range(2)} == {"[0] here\n", "[1] here\n"}
    assert job.others()
    job.process.kill()
    assert job.ended()[0] == -signal.SIGKILL


@pytest.mark.extras
def test_a_lost_connection_is_the_cause() -> None:
    job = Started("--grace", 0.3, "--hosts", "a,b", *SH, "echo here; exec sleep 100")
    assert {job.line() for _ in range(2)} == {"[0] here\n", "[1] here\n"}
    ssh = [pid for pid in processes("TEST_JOB", job.name) if b"fake_ssh" in command_of(pid)]
    target = next(pid for pid in ssh if command_of(pid).split(b"\0")[-3] == b"b")
    os.kill(target, signal.SIGKILL)
    code, _, complaint = job.ended()
    assert code == 1
    assert "Error: b: '" in complaint
    assert "was ended by signal 9" in complaint


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.extras
def test_a_host_that_is_none_ends_the_others() -> None:
    code, _, complaint = run("--hosts", "a,nowhere", *SH, "echo never")
    assert code == 1
    assert "[nowhere] ssh: Could not resolve hostname nowhere" in complaint
    assert "Error: nowhere: '" in complaint
    assert "ended with 255: ssh: Could not resolve hostname nowhere" in complaint


@pytest.mark.extras
def test_an_ssh_that_does_not_answer_or_is_none() -> None:
    silent = f"{sys.executable} -c 'import time; time.sleep(100)'"
    code, _, complaint = run("--connect", 0.3, "--hosts", "a,b", "true", ssh=silent)
    assert code == 1
    assert "a, b: no answer within 0.3 s" in complaint
    code, _, complaint = run("--hosts", "a", "--ssh", "/no/ssh", "true")
    assert code == 1
    assert "cannot run /no/ssh: No such file" in complaint
    other = "sh -c 'echo collectives agent 0.0; cat'"
    code, _, complaint = run("--hosts", "a", "true", ssh=other)
    assert "a has version 0.0 of this library" in complaint


@pytest.mark.extras
def test_ctrl_c_before_the_start() -> None:
    job = Started("--hosts", "a,b", *SH, "echo never", ssh=f"{SH[0]} -c 'echo said >&2; sleep 100'")
    assert job.process.stderr is not None
    job.process.stderr.readline()
    job.process.send_signal(signal.SIGINT)
    assert job.ended()[:2] == (128 + signal.SIGINT, "")


@pytest.mark.extras
def test_the_real_ssh_and_a_host_that_is_none() -> None:
    if shutil.which("ssh") is None:
        pytest.skip("needs ssh")
    code, _, complaint = run("--hosts", "no.such.host.invalid", "true", ssh="")
    assert code == 1
    assert "Error: no.such.host.invalid: 'ssh -o BatchMode=yes" in complaint
    assert "ended with 255: ssh: " in complaint


@pytest.mark.extras
def test_a_task_that_a_host_cannot_do_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("no program")
    program.chmod(0o700)
    code, _, complaint = run("--hosts", "a,b", program)
    assert code == 1
    assert "Exec format error" in complaint
    code, _, complaint = run("--hosts", "a", "true", COLLECTIVES_INTERFACE="nowhere0")
    assert code == 1
    assert "nowhere0" in complaint


def test_the_secret_stands_on_no_command_line_and_in_no_environment() -> None:
    program = (
        "import os, pathlib\n"
        "path = os.environ['COLLECTIVES_SECRET_FILE']\n"
        "secret = pathlib.Path(path).read_bytes()\n"
        "assert len(secret) == 64 and os.stat(path).st_mode & 0o777 == 0o600\n"
        "found = []\n"
        "for kind in ('cmdline', 'environ'):\n"
        "    for file in pathlib.Path('/proc').glob(f'[0-9]*/{kind}'):\n"
        "        try:\n"
        "            data = file.read_bytes()\n"
        "        except OSError:\n"
        "            continue\n"
        "        found += [str(file)] * (secret in data)\n"
        "print('found', found)\n"
    )
    code, printed, complaint = run("--hosts", "a", sys.executable, "-c", program)
    assert (code, printed, complaint) == (0, "[0] found []\n", "")


@pytest.mark.parametrize(
    ("text", "ranks", "found"),
    [
        ("a", None, [("a", 0, 1)]),
        ("a,b:2", None, [("a", 0, 1), ("b", 1, 3)]),
        ("me@a.b-c:2,10.0.0.1:3", 3, [("me@a.b-c", 0, 2), ("10.0.0.1", 2, 3)]),
        ("a:2,b:2", 2, [("a", 0, 2)]),
        ("[fe80::1%2]:2", None, [("[fe80::1%2]", 0, 2)]),
    ],
)
def test_hosts_are_filled_in_order(
    text: str, ranks: int | None, found: list[tuple[str, int, int]]
) -> None:
    assert shares(text, ranks) == [Share(name, range(a, b)) for name, a, b in found]


@pytest.mark.parametrize(
    ("text", "ranks", "words"),
    [
        ("", None, "'' is no host"),
        ("a,,b", None, "'' is no host"),
        ("-oProxyCommand=x", None, "is no host"),
        ("a b", None, "is no host"),
        ("a:0", None, "has 0 slots"),
        ("a:x", None, "is no host"),
        ("a,b,a:2", None, "a is there twice"),
        ("a,b", 3, "3 ranks do not fit: the hosts have 2 slots; give more, as a:2"),
    ],
)
def test_hosts_that_make_no_sense(text: str, ranks: int | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        shares(text, ranks)


@pytest.mark.extras
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("true",), "Missing how many ranks"),
        (("-n", "1", "--ssh", "x", "true"), "belong to --hosts"),
        (("--hosts", "a:x", "true"), "'a:x' is no host"),
        (("--hosts", "a", "--stdin", "true"), "--stdin does not reach"),
        (("--hosts", "a", "--env", "NOT_SET", "true"), "NOT_SET is to go along"),
        (("--hosts", "a:1024,b", "true"), "1025 ranks are too many"),
    ],
)
def test_mistakes_are_one_sentence(arguments: tuple[str, ...], words: str) -> None:
    code, _, complaint = run(*arguments)
    assert code == 2
    assert words in complaint
