# SPDX-License-Identifier: Apache-2.0
"""What is hidden of a transfer, what does not count, how products are fitted; a short run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.hosts import hiding
from bench.hosts.goals import VOID, M
from bench.hosts.hiding import Hiding, Turn
from bench.hosts.records import bound
from bench.peers.cells import Cell
from bench.peers.statistics import INCOMPLETE, MET, MISSED
from bench.record import ROOT
from tests.hosts.tools import missing

CELL = Cell("allreduce", "float32", 2, 16 * M)
LEAST = bound(CELL, 1000)


def made(*turns: Turn) -> Hiding:
    return Hiding(CELL, 1000, 10, list(turns))


def test_hidden_is_a_share_of_the_shorter_one() -> None:
    assert Turn(2.0, 1.0, 2.0, 1.0, 0.5).hidden == 1.0
    assert Turn(1.0, 2.0, 3.0, 1.0, 0.5).hidden == 0.0
    assert Turn(1.0, 1.0, 1.2, 1.0, 0.5).hidden == pytest.approx(0.8)


def test_hiding_is_judged_and_void_without_bytes() -> None:
    time = LEAST / 0.9
    good, bad = (Turn(time, time, time * both, 1.01, 0.5) for both in (1.1, 1.3))
    assert hiding.judge(made(good, good, good))[0].verdict == MET
    assert hiding.judge(made(bad, bad, bad))[0].verdict == MISSED
    astray = Turn(time, time, time, 0.9, 0.5)
    assert hiding.judge(made(good, good, astray))[0].verdict == VOID


def test_a_transfer_faster_than_the_link_does_not_count() -> None:
    good, fast = (Turn(LEAST / share, LEAST, LEAST, 1.01, 0.5) for share in (0.9, 0.97))
    assert made(good, fast).valid() == [good]
    assert hiding.judge(made(good, fast))[0].verdict == INCOMPLETE
    assert hiding.judge(made(fast, fast, fast))[0].verdict == VOID


def test_products_are_fitted_to_the_transfer() -> None:
    assert hiding.calibrated(lambda products: products * 0.001 + 0.01, 0.1) == pytest.approx(
        90, abs=1
    )
    assert hiding.calibrated(lambda _: 10.0, 0.001) == 1


def test_without_root_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hiding, "missing", lambda: "only root may make hosts.")
    assert hiding.main([]) == 2
    assert "only root may make hosts." in capsys.readouterr().err


@pytest.mark.hosts
@pytest.mark.processes
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_short_run(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    options = ["--hosts", "2", "--mib", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.hosts.hiding", *options, "--rounds", "3", "--output", output],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "2 hosts, 1 MiB: hidden" in done.stdout, done.stderr
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert all(one["wrong"] == 0 for one in rows), rows
    # A round that something has disturbed does not count; three are not.
    assert all(one["found"] is not None for one in rows), (rows, done.stdout)
