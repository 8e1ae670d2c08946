# SPDX-License-Identifier: Apache-2.0
"""collbench as its users run it: tables, files, proofs, drawings, and what it says of mistakes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

import collectives as cl
from collectives.cli.app import collbench
from collectives.exact import KINDS, ROOTED
from tests.patience import promised
from tests.shares import few

QUICK = ("--budget", "0.2")
COMMAND = [sys.executable, "-m", "collectives.cli"]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(collbench, list(arguments))


def rows(text: str) -> list[list[str]]:
    """Return the fields of the table's rows."""
    return [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+\d+\s", line)]


@pytest.mark.processes
@pytest.mark.parametrize("kind", KINDS)
def test_every_collective_has_a_right_table(kind: str) -> None:
    sizes = [] if kind == "barrier" else ["--sizes", "0,8,4K"]
    done = call(kind, "-n", "2", *sizes, *QUICK)
    assert done.exit_code == 0, done.output
    table = rows(done.stdout)
    # An empty vector is measured as such.
    assert [row[0] for row in table] == (["0"] if kind == "barrier" else ["0", "8", "4096"])
    assert table[0][:2] == ["0", "0"]
    assert all(row[-1] == "0" for row in table)
    assert f"# {kind}" in done.stdout
    assert "all results right" in done.stdout


@pytest.mark.processes
@pytest.mark.parametrize("p", [1, 3, 4])
def test_all_algorithms_at_several_ranks(p: int) -> None:
    done = call("allreduce", "-n", str(p), "--sizes", "8:1K", "--algorithms", "all", *QUICK)
    assert done.exit_code == 0, done.output
    fitting = [a.name for a in cl.algorithms("allreduce") if a.fits(p)]
    assert [row[5] for row in rows(done.stdout)] == fitting * len({8, 32, 128, 512, 1024})


@pytest.mark.processes
@few("kind", ["gather", "scatter", "alltoall", "scan", "exscan"], ["alltoall", "scatter"])
def test_all_algorithms_of_a_kind(kind: str) -> None:
    root = ("--root", "2") if kind in ROOTED else ()
    done = call(kind, "-n", "4", "-s", "8,16K", "--algorithms", "all", *root, *QUICK)
    assert done.exit_code == 0, done.output
    fitting = [a.name for a in cl.algorithms(kind) if a.fits(4)]
    assert [row[5] for row in rows(done.stdout)] == fitting * 2
    assert "all results right" in done.stdout


@pytest.mark.processes
def test_json_plot_and_trace(tmp_path: Path) -> None:
    data, picture, trace = (tmp_path / name for name in ("rows.json", "rows.png", "trace.json"))
    files = ("--json", str(data), "--plot", str(picture), "--trace", str(trace))
    done = call("reduce-scatter", "-n", "2", "-s", "8,1M", "-d", "bfloat16", *QUICK, *files)
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    document = json.loads(data.read_text(encoding="utf-8"))
    assert {"cpu", "cores", "kernel", "date"} <= document["machine"].keys()
    assert [row["size"] for row in document["rows"]] == [8, 1 << 20]
    assert all(row["dtype"] == "bfloat16" and row["wrong"] == 0 for row in document["rows"])
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    assert {e["pid"] for e in events if e["name"] == "reduce_scatter"} == {0, 1}


@pytest.mark.processes
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = call("barrier", "-n", "1", "--iterations", "1", "--json", str(tmp_path))
    assert done.exit_code == 2  # a folder is no file
    done = call("barrier", "-n", "1", "--iterations", "1", "--json", "/proc/version")
    assert done.exit_code == 1
    assert done.stderr.startswith("collbench: cannot write /proc/version: ")


@pytest.mark.processes
def test_options_reach_the_ranks() -> None:
    options = ("--root", "1", "--iterations", "3", "--no-pin", "--algorithms", "auto,binomial")
    done = call("broadcast", "-n", "2", "-s", "64", "-d", "int64", *options)
    assert done.exit_code == 0, done.output
    assert [row[:6] for row in rows(done.stdout)] == [
        ["64", "8", "int64", "none", "1", name] for name in ("auto", "binomial")
    ]
    assert "# 6 calls timed" in done.stdout
    assert "pinned" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["allreduce", "--sizes", "8X"], "'8X' is not a size"),
        (["allreduce", "--sizes", "64:8"], "ends before it begins"),
        (["allreduce", "--algorithms", "magic"], "there is no algorithm 'magic' of allreduce"),
        (["allreduce", "-n", "0"], "0"),
        (["allreduce", "--budget", "nan"], "nan is not a number of seconds"),
        (["allreduce", "--budget", "inf"], "inf is not a number of seconds"),
        (["allreduce", "--dtype", "int32", "--op", "avg"], "avg of int32 is not defined"),
        (["allreduce", "--json", "/no/such/folder/x.json"], "/no/such/folder does not exist"),
        (["allreduce", "--trace", "/no/such/folder/x.json"], "/no/such/folder does not exist"),
        (["allreduce", "--plot", "x.doc"], "must end in one of"),
        (["allreduce", "--plot", "/no/such/folder/x.png"], "/no/such/folder does not exist"),
        (["broadcast", "-n", "2", "--root", "2"], "--root 2 is not one of the 2 ranks (0 to 1)"),
        (["scan", "--op", "avg"], "avg"),
        (["alltoall", "--root", "0"], "--root"),
        (["barrier", "--sizes", "8"], "--sizes"),
        (["gossip"], "gossip"),
        (["verify", "magic"], "there is no algorithm 'magic'"),
        (["verify", "--ranks", "0"], "ranks"),
        (["verify", "-k", "gossip"], "collective 'gossip' is unknown"),
        (["draw", "magic"], "there is no algorithm 'magic'"),
        (["draw", "ring", "-o", "x.doc"], "must end in .svg or .txt"),
        (["draw", "ring", "-o", "/no/such/folder/x.svg"], "cannot write"),
        (["draw", "binomial", "-k", "broadcast", "-p", "2", "--root", "2"], "--root 2"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments: list[str], words: str) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("collbench: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = call("allreduce", "--plot", "x.png")
    assert done.exit_code == 2
    assert "pip install matplotlib" in done.stderr
    assert "pip install 'pycollectives[plot]'" in done.stderr


def test_without_a_command_there_is_help() -> None:
    done = call()
    assert done.exit_code == 2
    assert all(kind in done.output for kind in KINDS)
    assert call("--help").exit_code == 0
    assert call("allreduce", "--help").exit_code == 0


def test_list_shows_every_algorithm() -> None:
    shown = call("list")
    assert shown.exit_code == 0
    for algorithm in cl.algorithms():
        assert algorithm.name in shown.stdout
    only = call("list", "reduce-scatter").stdout
    assert "reduce_scatter" in only
    assert "dissemination" not in only


def test_draw(tmp_path: Path) -> None:
    text = call("draw", "ring", "-p", "3")
    assert text.exit_code == 0
    assert "round 0  rank 0" in text.stdout
    picture = tmp_path / "ring.svg"
    assert call("draw", "ring", "-p", "5", "-o", str(picture)).exit_code == 0
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    listing = tmp_path / "ring.txt"
    assert call("draw", "ring", "-p", "3", "-o", str(listing)).exit_code == 0
    assert listing.read_text(encoding="utf-8").rstrip("\n") == text.stdout.rstrip("\n")


def test_simulate(tmp_path: Path) -> None:
    picture = tmp_path / "timeline.svg"
    shown = call("simulate", "torus:4x4", "-s", "64K", "-o", str(picture))
    assert shown.exit_code == 0, shown.output
    assert "allreduce of 64K among 16 ranks" in shown.output
    assert all(a.name in shown.output for a in cl.algorithms("allreduce") if a.fits(16))
    assert picture.read_text().startswith("<svg")
    odd = call("simulate", "node:3", "-a", "ring,recursive_doubling", "--kind", "allgather")
    assert odd.exit_code == 0, odd.output
    assert "recursive_doubling is left out" in odd.output
    wrong = call("simulate", "cube:3")
    assert wrong.exit_code == 1
    assert "no such shape" in wrong.output
    assert call("simulate", "node:3", "-a", "rong").exit_code == 2


def test_env_names_every_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTIVES_TIMEOUT", "12.5")
    shown = call("env").stdout
    assert "12.5" in shown
    for name in ("RANK", "SIZE", "JOB", "ATTEMPT", "TIMEOUT", "FAULT"):
        assert f"COLLECTIVES_{name}" in shown


def children(pid: int) -> list[int]:
    """Return the ranks that `pid` has started. (It has a keeper, too.)"""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            command = stat.with_name("cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if int(parent) == pid and b"collectives.cli.worker" in command:
            found.append(int(stat.parent.name))
    return sorted(found)


def started(ranks: int, *options: str) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a measurement, by default a very long one; return it when its ranks are at work."""
    options = options or ("--sizes", "8,16,32", "--iterations", "4000000", "--no-pin")
    process = subprocess.Popen(
        [*COMMAND, "allreduce", "-n", str(ranks), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ids = children(process.pid)
        # A rank that has mapped the segment has met the others.
        if len(ids) == ranks and all("memfd:" in _maps(pid) for pid in ids):
            time.sleep(0.5)  # and is at work: a Ctrl-C in its first moments was lost once
            return process, ids
        time.sleep(0.02)
    process.kill()
    raise AssertionError(f"the ranks did not start: {process.communicate()}")


def _maps(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    except OSError:
        return ""


@pytest.mark.processes
def test_ctrl_c_ends_everything_cleanly() -> None:
    process, ids = started(3)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - begin < promised(3)
    assert process.returncode == 130
    assert err.strip() == "collbench: interrupted"
    assert rows(out) == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in ids)


@pytest.mark.processes
def test_it_ends_quietly_when_nobody_reads_its_rows() -> None:
    # Whenever that is, a next row comes soon: the last ones take long on any machine.
    process, ids = started(2, "--sizes", "8:4M", "--iterations", "20000", "--no-pin")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as complaints:
        assert complaints.read() == ""
    assert process.wait(60) == 128 + signal.SIGPIPE
    assert not any(Path(f"/proc/{pid}").exists() for pid in ids)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "streams"),
    [
        ("allreduce -n 2 -s 8:64K " + " ".join(QUICK), ["stdout", "stderr"]),
        ("allreduce --help", ["stdout"]),
        ("list", ["stdout"]),
        ("verify ring --ranks 2", ["stdout", "stderr"]),
        ("draw ring", ["stdout"]),
        ("env", ["stdout", "stderr"]),
    ],
)
def test_nothing_is_said_where_nobody_reads(command: str, streams: list[str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)  # as in `collbench ... | true`
    given: dict[str, Any] = {"stdout": theirs, "stderr": subprocess.PIPE} | dict.fromkeys(
        streams, theirs
    )
    done = subprocess.run([*COMMAND, *command.split()], **given, text=True, timeout=60)
    os.close(theirs)
    assert done.returncode == 128 + signal.SIGPIPE
    assert not done.stderr


@pytest.mark.processes
def test_a_mistake_that_nobody_reads_has_the_same_exit_code() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    assert subprocess.run([*COMMAND, "gossip"], stderr=theirs, timeout=60).returncode == 141
    os.close(theirs)


@pytest.mark.processes
def test_a_killed_rank_is_named() -> None:
    process, ids = started(3)
    os.kill(ids[1], signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err.startswith("collbench: ")
    assert "rank 1" in err
    assert "SIGKILL" in err
    assert not any(Path(f"/proc/{pid}").exists() for pid in ids)


@pytest.mark.processes
def test_on_a_terminal_there_are_colours_and_a_bar() -> None:
    ours, theirs = pty.openpty()
    options = ["-n", "2", "--sizes", "8,64", "-a", "ring,auto", *QUICK]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "140"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [*COMMAND, "allreduce", *options], stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # Linux says so at the end of a terminal
                break
            if not data:
                break
            seen += data
    os.close(ours)
    assert process.returncode == 0, seen
    text = seen.decode()
    assert "\x1b[32m" in text  # the fastest in green
    assert re.search(r"\d+/16", text)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert len([line for line in re.split(r"[\r\n]+", plain) if line.endswith(" 0")]) == 4
