# SPDX-License-Identifier: Apache-2.0
"""Times of jobs that begin: what ranks tell, what is asked, a job that fails, a short run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.hosts import jobs, start
from bench.hosts.jobs import Start, StartError, summed
from bench.peers.statistics import MET, MISSED
from bench.record import ROOT
from tests.hosts.tools import missing


def test_a_start_is_that_of_the_last_rank() -> None:
    text = "1 10.5 12.0 12.5\nsome warning of a rank here\n0 11.0 12.25 12.75\n"
    assert summed(9.0, text, 2) == Start(3.25, 1.25, 0.5)
    with pytest.raises(StartError, match=r"of 3 ranks 1 told nothing: \[2\]"):
        summed(9.0, text, 3)


def test_only_many_native_processes_have_the_goal_of_many() -> None:
    starts = [Start(5.5, 2.0, 1.0)] * 3
    verdicts = [one.verdict for one in start.judge((start.NATIVE, "folder", 256), starts)]
    assert verdicts == [MISSED, MET, ""]
    assert start.judge((start.NATIVE, "folder", 16), starts)[0].goal is None
    assert start.judge((start.PYTHON, "pmi", 256), starts)[0].goal is None


def test_a_job_that_fails_says_what_its_ranks_said(tmp_path: Path) -> None:
    def failing(folder: Path, said: Any) -> list[Any]:
        words = [sys.executable, "-c", "raise SystemExit('no such thing')"]
        return [subprocess.Popen(words, stdout=said, stderr=said, cwd=folder)]

    with pytest.raises(StartError, match="no such thing"):
        jobs.once(failing, 1, tmp_path / "job")


def test_without_root_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "missing", lambda: "only root may make hosts.")
    assert start.main([]) == 2
    assert "only root may make hosts." in capsys.readouterr().err


@pytest.mark.all_cases
@pytest.mark.processes
def test_native_processes_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "PRESET", "package")  # which the native tests have built
    options = ["--ranks", "6", "--each", "0", "--channels", "folder", "master", "--rounds", "1"]
    assert start.main([*options, "--output", str(tmp_path / "start.json")]) == 0
    assert "native, folder, 6 ranks" in capsys.readouterr().out
    found = json.loads((tmp_path / "start.json").read_text(encoding="utf-8"))["jobs"]
    assert [job["channel"] for job in found] == ["folder", "master"]
    for job in found:
        (one,) = job["starts"]
        assert 0 < one["init"] < one["started"]
        assert one["first"] > 0


@pytest.mark.hosts
@pytest.mark.processes
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_short_run(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    options = ["--ranks", "0", "--each", "1", "--channels", "folder", "master"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.hosts.start", *options, "--rounds", "1", "--output", output],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "init(), folder, 4 ranks" in done.stdout, done.stderr
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert all(one["found"] is not None and one["wrong"] == 0 for one in rows)
