# SPDX-License-Identifier: Apache-2.0
"""collrun: what the ranks get, what is seen of them, and how they end."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import collectives as cl
from collectives.cause import Note, tell_collrun
from collectives.environment import ATTEMPT, JOB, RANK, SIZE
from collectives.launch import MOST_RANKS
from tests.processes.jobs import COLLRUN, ROOT, collrun, environment, ranks, start, until

pytestmark = pytest.mark.processes

SH = ("sh", "-c")


def test_ranks_get_their_place() -> None:
    done = collrun("-n", 3, "--attempt", 2, *SH, f"echo ${RANK}/${SIZE} ${ATTEMPT} ${JOB}")
    lines = sorted(done.stdout.splitlines())
    assert [line.rpartition(" ")[0] for line in lines] == [f"[{r}] {r}/3 2" for r in range(3)]
    jobs = {line.rpartition(" ")[2] for line in lines}
    assert len(jobs) == 1
    assert re.fullmatch(r"[0-9a-f]{16}", jobs.pop())
    assert (done.returncode, done.stderr) == (0, "")


def test_jobs_have_names_of_their_own() -> None:
    assert len({collrun("-n", 1, *SH, f"echo ${JOB}").stdout for _ in range(2)}) == 2


def test_python_files_modules_and_programs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; print(sys.argv[1:])")
    assert collrun("-n", 1, program, "-n", "--help").stdout == "[0] ['-n', '--help']\n"
    assert "usage" in collrun("-n", 1, "-m", "json.tool", "--help").stdout
    assert collrun("-n", 1, "echo", "--help me").stdout == "[0] --help me\n"


def test_output_keeps_its_stream_and_its_lines() -> None:
    script = "printf 'one\\n\\ntwo'; printf 'err' >&2; printf '\\377\\n'"
    done = subprocess.run(
        [*COLLRUN, "-n", "1", *SH, script], cwd=ROOT, env=environment(), capture_output=True
    )
    assert done.stdout == b"[0] one\n[0] \n[0] two\xff\n"
    assert done.stderr == b"[0] err\n"


def test_prefixes_can_be_timed_or_left_away() -> None:
    timed = collrun("-n", 1, "--timestamps", "echo", "a").stdout
    assert re.fullmatch(r"\[0\] +\d\.\d{3} a\n", timed)
    assert collrun("-n", 2, "--no-prefix", "echo", "a").stdout == "a\na\n"
    wide = collrun("-n", 11, *SH, f"[ ${RANK} = 3 ] && echo a || true").stdout
    assert wide == "[ 3] a\n"


def test_prefixes_are_coloured_on_a_terminal() -> None:
    for variables, wanted in (({}, b"\x1b[36m[0]\x1b[0m a"), ({"NO_COLOR": "1"}, b"[0] a")):
        master, slave = pty.openpty()
        command = [*COLLRUN, "-n", "1", "echo", "a"]
        subprocess.run(command, cwd=ROOT, env=environment(variables), stdout=slave, check=True)
        os.close(slave)
        assert os.read(master, 100).strip() == wanted
        os.close(master)


def test_standard_input_is_rank_0s_or_nobodys() -> None:
    assert collrun("-n", 2, "cat", input="hello\n").stdout == ""
    assert collrun("-n", 2, "--stdin", "cat", input="hello\n").stdout == "[0] hello\n"
    large = "x" * 300_000 + "\n"
    assert collrun("-n", 2, "--stdin", "cat", input=large).stdout == "[0] " + large


def test_the_first_failure_is_collruns() -> None:
    done = collrun("-n", 3, *SH, f"[ ${RANK} = 2 ] && exit 7; true")
    assert done.returncode == 7
    assert re.fullmatch(
        r"collrun: rank 2 \(process \d+\) ended with exit code 7; "
        r"the others ended by themselves\n",
        done.stderr,
    )


# Rank 1 fails, and takes its time to end; rank 0 hears of it at once, and ends before.
SLOW_TO_END = """
import time
import collectives as cl
with cl.init(timeout=20) as comm:
    if comm.rank == 1:
        comm.abort("it has failed")
        time.sleep(0.7)
        raise SystemExit(3)
    comm.barrier()
"""


def test_who_failed_because_of_another_is_not_named() -> None:
    done = collrun("-n", 2, sys.executable, "-c", SLOW_TO_END)
    assert done.returncode == 3
    assert "AbortedError" in done.stderr
    assert "collrun: rank 1 (process " in done.stderr


def test_a_process_of_a_rank_has_no_pipe_to_collrun() -> None:
    """It has the variable, and may have opened something else at that number."""
    program = """
import os, subprocess, sys, tempfile
from collectives.cause import FAREWELL, tell_collrun
from collectives.errors import PeerLostError
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
    raise SystemExit(5)
with tempfile.TemporaryFile() as file:
    number = int(os.environ[FAREWELL].split(":")[0])
    os.dup2(file.fileno(), number)
    tell_collrun(PeerLostError("gone", 1))
    assert os.fstat(number).st_size == 0
"""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(program)
        script.flush()
        done = collrun("-n", 1, sys.executable, script.name)
    assert (done.returncode, "AssertionError" in done.stderr) == (5, False), done.stderr


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (cl.PeerLostError("rank 1 died", 1), True),
        (cl.AbortedError("rank 1 has aborted", 1), True),
        (cl.AbortedError("this rank has aborted", 0), False),
        (cl.InvalidArgumentError("rank 1 cannot take part", 1), True),
        (cl.InvalidArgumentError("no such op"), False),
        (cl.MismatchError("ranks 0 and 1 differ", 1), False),
        (cl.CollectiveTimeoutError("rank 1 has not come", 1), False),
        (ValueError("of the program"), False),
        (None, False),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_which_errors_are_another_ranks(
    monkeypatch: pytest.MonkeyPatch, error: BaseException | None, says: bool, inside: bool
) -> None:
    note = Note()
    for name, value in {**note.variable, RANK: "0"}.items():
        monkeypatch.setenv(name, value)
    outer: BaseException | None = error
    if inside:
        outer = RuntimeError("of a library above")
        outer.__context__ = error
    tell_collrun(outer)
    assert note.take() is says
    note.handed_over()
    assert note.take() is False
    note.close()


def test_a_signal_is_128_and_its_number() -> None:
    done = collrun("-n", 2, *SH, f"[ ${RANK} = 1 ] && kill -SEGV $$; true")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "rank 1 (process" in done.stderr
    assert "was ended by SIGSEGV" in done.stderr


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    done = collrun("-n", 1, "bash", "-c", "kill -40 $$")
    assert done.returncode == 128 + 40
    assert re.fullmatch(r"collrun: rank 0 \(process \d+\) was ended by signal 40\n", done.stderr)


def test_a_killed_rank_is_named_though_its_peers_fail_first() -> None:
    # As when a large process takes longer to die than the others to notice.
    script = f"[ ${RANK} = 0 ] && exit 1; sleep 0.3; [ ${RANK} = 1 ] && kill -KILL $$; true"
    done = collrun("-n", 3, *SH, script)
    assert done.returncode == 128 + signal.SIGKILL
    assert "rank 1 (process" in done.stderr


def test_the_others_get_time_then_are_ended_then_killed() -> None:
    script = f"""case ${RANK} in
      0) exit 3;;
      1) sleep 0.1; echo done;;
      2) trap 'echo asked; exit 0' TERM; while :; do sleep 0.02; done;;
      3) trap '' TERM; echo here; while :; do sleep 0.02; done;;
    esac"""
    begin = time.monotonic()
    done = collrun("-n", 4, "--grace", 0.4, *SH, script)
    assert done.returncode == 3
    assert sorted(done.stdout.splitlines()) == ["[1] done", "[2] asked", "[3] here"]
    assert "rank 0 (process" in done.stderr
    assert done.stderr.endswith("ended after it: rank 2, 3\n")
    assert time.monotonic() - begin < 10


def test_ctrl_c_is_passed_on_once_and_then_kills() -> None:
    script = "trap 'echo first' INT; echo ready; while :; do sleep 0.02; done"
    job = start("-n", 2, *SH, script)
    assert job.stdout is not None
    assert {job.stdout.readline() for _ in range(2)} == {"[0] ready\n", "[1] ready\n"}
    job.send_signal(signal.SIGINT)
    assert {job.stdout.readline() for _ in range(2)} == {"[0] first\n", "[1] first\n"}
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=20)
    assert job.returncode == 128 + signal.SIGKILL
    assert "was ended by SIGKILL" in errors
    assert ranks(job) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_ranks_that_do_not_mind(number: signal.Signals) -> None:
    job = start("-n", 2, sys.executable, "-c", "print('ready'); import time; time.sleep(60)")
    assert job.stdout is not None
    for _ in range(2):
        job.stdout.readline()
    job.send_signal(number)
    _, errors = job.communicate(timeout=20)
    assert job.returncode == 128 + number
    assert f"collrun: {number.name} was passed on to all ranks: rank " in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_ranks_that_were_stopped(number: signal.Signals) -> None:
    job = start("-n", 2, *SH, "echo $$; kill -STOP $$; exec sleep 100")
    assert job.stdout is not None
    for rank in sorted(int(job.stdout.readline().split()[1]) for _ in range(2)):
        assert until(lambda: Path(f"/proc/{rank}/stat").read_text().split()[2] == "T")  # noqa: B023
    job.send_signal(number)
    job.communicate(timeout=20)
    assert job.returncode == 128 + number
    assert not ranks(job)


def test_a_reader_that_goes_ends_the_job() -> None:
    with start("-n", 2, "yes") as job:
        assert job.stdout is not None
        job.stdout.readline()
        job.stdout.close()
        assert job.wait(20) == 128 + signal.SIGPIPE
        assert job.stderr is not None
        assert job.stderr.read() == ""
        assert until(lambda: ranks(job) == []) is True


def test_ranks_may_end_well_when_the_reader_goes() -> None:
    script = "trap 'echo asked >&2; exit 0' TERM; while :; do echo line; sleep 0.01; done"
    with start("-n", 1, *SH, script) as job:
        assert job.stdout is not None
        job.stdout.readline()
        job.stdout.close()
        assert job.wait(20) == 128 + signal.SIGPIPE
        assert job.stderr is not None
        assert "[0] asked\n" in job.stderr.read()


def test_nobody_reads_errors_either() -> None:
    reading, writing = os.pipe()
    with start("-n", 2, "yes", stdout=writing, stderr=writing) as job:
        os.close(writing)
        assert os.read(reading, 1) == b"["
        os.close(reading)
        assert job.wait(20) == 128 + signal.SIGPIPE
        assert until(lambda: ranks(job) == []) is True


def test_an_exit_code_outlives_the_reader_of_errors() -> None:
    job = f'"{sys.executable}" -m collectives.launch -n 1 sh -c "sleep 0.05; exit 5"'
    script = f"set -o pipefail; {job} 2>&1 | true"
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment(), timeout=60)
    assert done.returncode == 5


def test_a_failure_before_the_reader_goes_is_still_named() -> None:
    script = f"""[ ${RANK} = 1 ] && exit 7
    trap 'echo asked' TERM; while :; do echo line; sleep 0.01; done"""
    with start("-n", 2, "--grace", 0.2, *SH, script) as job:
        assert job.stdout is not None
        assert until(lambda: job.stdout and job.stdout.readline() == "[0] asked\n")
        job.stdout.close()
        assert job.wait(20) == 7
        assert job.stderr is not None
        assert "rank 1 (process" in job.stderr.read()


def test_the_version_is_the_packages() -> None:
    done = collrun("--version")
    assert (done.returncode, done.stdout) == (0, f"collrun, version {cl.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", 2], "Missing what to run"),
        (["echo"], "Missing how many ranks"),
        (["-n", 0, "echo"], "0 ranks cannot be started: a job on one machine has 1 to 1024"),
        (["-n", 100_000, "echo"], "100000 ranks cannot be started: a job on one machine has 1 to"),
        (["-n", 2, "--grace", "nan", "echo"], "nan is not a number of seconds"),
        (["-n", "two", "echo"], "'two' is not a valid integer"),
        (["-n", 2, "--attempt", -1, "echo"], "-1 is not in the range"),
        (["-n", 2, "nothing.py"], "There is no file nothing.py"),
        (["-n", 2, "no-such-program"], "There is no program no-such-program"),
    ],
)
def test_wrong_arguments(arguments: list[object], words: str) -> None:
    done = collrun(*arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_the_most_ranks_are_those_of_the_library() -> None:
    with pytest.raises(cl.InvalidArgumentError, match=f"1 ... {MOST_RANKS} on one machine"):
        cl.local(MOST_RANKS + 1)


def test_a_program_that_cannot_run_is_named(tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_bytes(b"\x7fELF, but not really")
    program.chmod(0o755)
    done = collrun("-n", 2, program)
    assert done.returncode == 1
    assert f"cannot run {program}: Exec format error" in done.stderr


def test_ranks_get_one_thread_each_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    show = ("--no-prefix", *SH, 'echo "threads=$OMP_NUM_THREADS"')
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert set(collrun("-n", 2, *show).stdout.split()) == {"threads=1"}
    assert set(collrun("-n", 1, *show).stdout.split()) == {"threads="}
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert set(collrun("-n", 2, *show).stdout.split()) == {"threads=3"}
