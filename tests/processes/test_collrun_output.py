# SPDX-License-Identifier: Apache-2.0
"""collrun and standard output that cannot be written, and lines that are very long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from collectives.lines import LONGEST, Lines
from collectives.printers import with_prefixes, without_prefixes
from tests.processes.jobs import COLLRUN, ROOT, collrun, environment, ranks, start, until
from tests.processes.test_collrun_hosts import SSH

pytestmark = pytest.mark.processes

COLLBENCH = (sys.executable, "-m", "collectives.cli")
LONG = ("-c", "import sys; sys.stdout.write('y' * 20_000_000)")
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


def test_ranks_outlive_closed_errors_and_input(tmp_path: Path) -> None:
    script = f"""
        cd {tmp_path}
        [ $COLLECTIVES_RANK = 0 ] || until [ -e first ]; do sleep 0.05; done
        echo out; echo err >&2; touch first; exit $((3 * COLLECTIVES_RANK))
    """
    done = shell('"$@" <&- 2>&-', *COLLRUN, "-n", "2", "--stdin", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (3, "[0] out\n[1] out\n", "")


def test_an_exit_code_outlives_errors_that_cannot_be_written() -> None:
    done = shell('"$@" 2>/dev/full', *COLLRUN, "-n", "1", "sh", "-c", "exit 5")
    assert done.returncode == 5


def test_a_long_line_comes_as_it_was_written() -> None:
    assert collrun("-n", 1, sys.executable, *LONG).stdout == "[0] " + "y" * 20_000_000 + "\n"


@pytest.mark.parametrize("options", [(), ("--no-prefix",)])
def test_a_long_line_comes_from_another_host(options: tuple[str, ...]) -> None:
    command = ("--hosts", "a", *options, sys.executable, *LONG)
    done = collrun(*command, env={"COLLECTIVES_SSH": SSH})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if options else "[0] ") + "y" * 20_000_000 + "\n"


def test_no_more_than_a_bound_is_kept_of_a_line() -> None:
    lines, came, given = Lines(), 0, 0
    for _ in range(400):
        pieces = lines.take(b"y" * (1 << 16))
        came += 1 << 16
        given += sum(map(len, pieces))
        assert came - given <= LONGEST
        assert not any(piece.endswith(b"\n") for piece in pieces)
    (end,) = lines.take(b"z\n")
    assert len(end) == came - given + 2
    assert lines.last() == []


@pytest.mark.parametrize(
    ("data", "found", "last"),
    [
        ([b"a\n\nb", b"c\nd"], [b"a\n", b"\n", b"bc\n"], [b"d\n"]),
        ([b"abc", b"d", b"e\nf\n"], [b"abcd", b"e\n", b"f\n"], []),
        ([b"abcd"], [b"abcd"], [b"\n"]),
        ([b"abcd", b"\n"], [b"abcd", b"\n"], []),
        ([b"abc"], [], [b"abc\n"]),
        ([], [], []),
    ],
)
def test_lines_and_pieces(data: list[bytes], found: list[bytes], last: list[bytes]) -> None:
    lines = Lines(3)
    assert [line for part in data for line in lines.take(part)] == found
    assert lines.last() == last
    assert lines.last() == []


@pytest.mark.parametrize(
    ("prefix", "wanted"),
    [
        (True, b"[0] aab\n[1] c\n[0] d\n[1] e\n[0] f\n"),
        (False, b"aab\nc\nd\ne\nf\n"),
    ],
)
def test_a_rank_between_pieces_begins_a_line(
    prefix: bool, wanted: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "printed"
    with path.open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        out, _ = with_prefixes(2, False) if prefix else without_prefixes()
        pieces = [(0, b"a"), (0, b"ab\n"), (1, b"c\n"), (0, b"d"), (1, b"e"), (0, b"f\n")]
        for rank, piece in pieces:
            out(rank, piece)
        monkeypatch.undo()
    assert path.read_bytes() == wanted
