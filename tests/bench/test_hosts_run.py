# SPDX-License-Identifier: Apache-2.0
"""The program between hosts: how long blocks are, how hosts are entered, and a short run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.hosts import __main__ as program
from bench.hosts.run import BLOCK, calls_of, drain_of
from bench.hosts.teams import entering, teams
from bench.record import ROOT
from tests.hosts import Host
from tests.hosts.namespaces import PREFIX, names
from tests.hosts.tools import missing

RUN = [sys.executable, "-m", "bench.hosts", "--hosts", "2", "--libraries", "--collectives"]
PATIENCE = 60.0


def test_a_block_is_64_mib_or_a_third_of_a_second() -> None:
    assert calls_of(16 << 20, 0.2) == 4
    assert calls_of(64 << 10, 1e-3) == 1024
    assert calls_of(1024, 1e-3) == 300
    assert calls_of(1 << 30, 10.0) == 3
    assert calls_of(1 << 20, 10.0) == 3  # not for ever, however slow
    assert [drain_of(calls) for calls in (1, 4, 5, 300)] == [1, 1, 2, 75]
    assert calls_of(BLOCK, 0.01) == 3


def test_each_peer_is_called_in_its_fastest_way() -> None:
    assert [str(team) for team in teams(["gloo", "mpich"], "persistent")] == [
        "ours/persistent",
        "gloo/torch",
        "mpich/single",
    ]


def test_a_host_is_entered_by_its_name(tmp_path: Path) -> None:
    hosts = [Host(f"host{i}", "", "", "", "", 100 + i) for i in range(2)]
    enter = tmp_path / "enter"
    enter.write_text(entering(hosts), encoding="utf-8")
    fake = tmp_path / "nsenter"
    fake.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    fake.chmod(0o700)

    def entered(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", enter, *words],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    assert entered("-x", "host1", "proxy", "--port", "7").stdout == (
        "--target=101 --net --uts --mount -- sh -c proxy --port 7\n"
    )
    nowhere = entered("host7", "proxy")
    assert (nowhere.returncode, nowhere.stderr) == (1, "no host is called host7\n")


def test_without_root_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "missing", lambda: "only root may make hosts.")
    assert program.main([]) == 2
    assert capsys.readouterr().err == "bench.hosts: only root may make hosts.\n"


@pytest.mark.parametrize(
    "words", [["--rounds", "0"], ["--hosts", "1"], ["--sizes", "2"], ["--libraries", "nccl"]]
)
def test_what_cannot_be_asked_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        program.main(words)


@pytest.mark.hosts
@pytest.mark.processes
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_short_run_measures_and_counts(tmp_path: Path) -> None:
    output = tmp_path / "hosts.json"
    done = subprocess.run(
        [*RUN, "allreduce", "--sizes", "64K", "--rounds", "1", "--output", output],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2 hosts, links of 1000 Mbit/s" in done.stdout
    found = json.loads(output.read_text(encoding="utf-8"))
    assert found["links"]["congestion"] == "reno"
    (cell,) = found["cells"]
    assert (cell["wrong"], cell["void"]) == ({}, None)
    ours = cell["teams"]["ours/ordinary"]
    assert 1.0 <= ours["traffic"]["median"] < 1.5
    assert [one["calls"] for one in ours["blocks"]] == [1024 + 256 + 1]


@pytest.mark.hosts
@pytest.mark.processes
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [*RUN, "allreduce", "--sizes", "64K", "--rounds", "900", "--output", tmp_path / "out.json"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        end = time.monotonic() + PATIENCE
        while not any(scratch.glob("*/*.meeting/*")):
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(1.0)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        _, said = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130, said
    assert "interrupted" in said
    assert list(scratch.iterdir()) == []
    assert names(f"{PREFIX}-{run.pid}") == []
