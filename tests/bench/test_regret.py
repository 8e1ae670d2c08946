# SPDX-License-Identifier: Apache-2.0
"""The regret bench: its figures and goals, what it keeps, and small runs on real ranks."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.record import ROOT
from bench.regret import __main__ as program
from bench.regret.document import DocumentError, Row, Team, load, merged, teams
from bench.regret.figures import few_undecided, figures, held_out_ranks, summary, verdicts
from bench.regret.jobs import JobError, _await, on_machine
from bench.regret.rank import Schedule
from collectives.tuning.wanted import SHARED_SIZES, WIRE_SIZES
from tests.bench.regrets import cell, document, job
from tests.hosts.tools import missing


def rows(*cells: dict[str, Any]) -> tuple[Row, ...]:
    (team,) = teams({"ranks": {"2": job(*cells)}})
    return team.rows


def test_figures() -> None:
    of = rows(cell(1.0), cell(1.21), cell(1.5, held_out=True), cell(9.0, high=1.2))
    assert [row.undecided for row in of] == [False, False, False, True]
    found = summary(of)
    assert (found["undecided"], found["of"]) == (1, 4)
    assert math.isclose(found["tuned"]["mean"], 1.1)
    assert found["tuned"]["max"] == 1.21
    assert found["held out"] == {"cells": 1, "mean": 1.5, "p99": 1.5, "max": 1.5}
    assert found["rule"]["cells"] == 3
    assert math.isclose(found["model"]["max"], 1.5 * 1.5)
    assert figures([]) == {"cells": 0}
    assert figures([1.0 + i / 100 for i in range(200)])["p99"] == 1.0 + 197 / 100


def test_goals_are_those_of_jobs_with_a_table_and_of_held_out_ranks() -> None:
    tabled, apart = teams(document())
    assert (tabled.title, apart.title) == ("2 ranks", "3 ranks")
    found = verdicts(tabled)
    assert [found["tuned", name].bound for name in ("mean", "p99", "max")] == [1.03, 1.1, 1.2]
    assert (found["held out", "max"].bound, found["rule", "max"].bound) == (1.3, None)
    assert found["tuned", "max"].met is False
    assert found["held out", "max"].met is True
    alone = verdicts(apart)
    assert (alone["tuned", "max"].met, alone["rule", "max"].bound) == (None, 1.3)
    assert alone["rule", "max"].met is False
    assert alone["model", "mean"].bound == 1.15
    assert held_out_ranks([tabled, apart])["ranks"] == ["3 ranks"]
    assert held_out_ranks([tabled])["rule"] == {"cells": 0}


def test_fewer_than_a_tenth_may_be_undecided() -> None:
    clear, not_clear = cell(1.0), cell(1.0, high=1.2)

    def team(*cells: dict[str, Any]) -> Team:
        return teams({"ranks": {"2": job(*cells)}})[0]

    assert few_undecided(team(*[clear] * 10, not_clear))
    assert not few_undecided(team(*[clear] * 9, not_clear))


def test_a_job_takes_the_place_of_the_one_before_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "regret.json"
    assert merged(path, "ranks", 4, job(cell(1.0))) == {"ranks": {"4": job(cell(1.0))}, "hosts": {}}
    before = document()
    for one in before["ranks"].values():
        del one["machine"]  # as it was before jobs were measured one by one
    path.write_text(json.dumps({"machine": {"cpu": "old"}, "asked": 7, **before}))
    new = {"machine": {"cpu": "new"}, **job(cell(1.5))}
    whole = merged(path, "ranks", 3, new)
    assert list(whole["ranks"]) == ["2", "3"]
    assert whole["ranks"]["3"] == new
    assert whole["ranks"]["2"] == {"machine": {"cpu": "old"}, "asked": 7, **before["ranks"]["2"]}
    path.write_text(json.dumps(whole))
    hosts = merged(path, "hosts", 4, new)
    assert [team.title for team in teams(hosts)] == ["2 ranks", "3 ranks", "4 hosts"]
    assert hosts["ranks"] == whole["ranks"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.clear(), "neither 'ranks' nor 'hosts'"),
        (lambda d: d.update(ranks=[1]), "ranks is \\[1\\], no dict"),
        (lambda d: d["ranks"].update(two={}), "ranks.two is for no number of ranks"),
        (lambda d: d["ranks"]["2"].pop("cells"), "ranks.2.cells is None, no list"),
        (lambda d: d["ranks"]["2"]["cells"][1].pop("same"), r"cells\[1\].same is None"),
        (lambda d: d["ranks"]["2"]["cells"][0]["rule"].update(low=-1), "rule.low is -1, no number"),
        (lambda d: d["ranks"]["2"]["cells"][0].update(seconds=True), "seconds is True"),
        (lambda d: d["ranks"]["2"]["cells"][0].update(nbytes=math.nan), "nbytes is nan"),
        (lambda d: d["ranks"]["2"]["cells"][0].update(held_out=0), "held_out is 0, no bool"),
        (lambda d: d["ranks"]["2"].update(predicting=3), "predicting is 3, no dict"),
    ],
)
def test_what_holds_no_regrets_is_refused(
    change: Callable[[dict[str, Any]], Any], sentence: str, tmp_path: Path
) -> None:
    whole = document()
    change(whole)
    path = tmp_path / "regret.json"
    path.write_text(json.dumps(whole))
    with pytest.raises(DocumentError, match=f"regret.json holds no regrets: .*{sentence}"):
        load(path)


@pytest.mark.parametrize(("content", "sentence"), [(b"{", "is not JSON"), (b"\xff", "is not JSON")])
def test_what_is_no_json_is_refused_before_anything_is_measured(
    content: bytes, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "regret.json"
    path.write_bytes(content)
    assert program.main(["--ranks", "2", "--output", str(path)]) == 2
    assert sentence in capsys.readouterr().err


def test_without_root_there_are_no_hosts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "missing", lambda: "only root may make hosts.")
    assert program.main(["--hosts", "4", "--output", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err == "bench.regret: only root may make hosts.\n"


def test_what_is_asked_for() -> None:
    parse = program._parser().parse_args
    usual = parse([])
    two, three = (program.asked(usual, "ranks", p) for p in (2, 3))
    assert (tuple(two["tuned"]), two["budget"], three["budget"]) == (SHARED_SIZES, 10.0, 0.0)
    assert not set(two["tuned"]) & set(two["held_out"])
    hosts = program.asked(usual, "hosts", 3)
    assert (tuple(hosts["tuned"]), hosts["budget"]) == (WIRE_SIZES, 20.0)
    assert max(hosts["tuned"] + hosts["held_out"]) == 4 << 20
    given = parse(["--held-out-ranks", "--budget", "1", "--sizes", "8", "--held-out"])
    assert program.asked(given, "ranks", 3)["budget"] == 1.0
    assert program.asked(given, "ranks", 3)["held_out"] == []


class Hand:
    """A clock that says what it is told."""

    def __init__(self, *left: float) -> None:
        self.all = list(left)

    def left(self) -> float:
        return self.all.pop(0)


def test_cells_that_would_take_too_long_are_left_out() -> None:
    schedule = Schedule(Hand(100.0, 90.0, 89.0, 30.0, 21.0, 19.0))  # type: ignore[arg-type]
    assert schedule.allows("reduce", 1000)
    assert schedule.took("reduce", 1000) == 10.0
    assert schedule.allows("reduce", 4000)  # 40 s of 89
    assert schedule.took("reduce", 4000) == 59.0
    assert schedule.allows("allreduce", 1 << 30)  # of which nothing is known
    assert not schedule.allows("reduce", 8000)


@pytest.mark.long
def test_a_small_run(tmp_path: Path) -> None:
    output = tmp_path / "regret.json"
    words = ("--ranks", "2", "--kinds", "allreduce", "--sizes", "8", "4096", "--held-out", "100")
    quick = ("--budget", "0.3", "--cell", "0.05", "--output", str(output), "--no-page")
    subprocess.run(
        [sys.executable, "-m", "bench.regret", *words, *quick], cwd=ROOT, check=True, timeout=60
    )
    found = json.loads(output.read_text())["ranks"]["2"]
    assert [row["nbytes"] for row in found["cells"]] == [8, 100, 4096]
    assert found["summary"]["of"] == 3
    assert found["left_out"] == []
    assert found["predicting"]["choices"] == 3
    assert 0 < found["predicting"]["seconds"] < 60
    for row in found["cells"]:
        assert row["seconds"] > 0
        assert len(row["candidates"]) >= 4
        for way in ("tuned", "rule", "model"):
            assert row[way]["low"] <= row[way]["ratio"] <= row[way]["high"]
        assert row["model"]["choice"] in row["candidates"]
        assert row["rounds"] >= 30


def test_nothing_stays_behind_a_run_that_is_terminated(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    words = ("--ranks", "2", "--kinds", "allreduce", "--budget", "60", "--no-page")
    command = [sys.executable, "-m", "bench.regret", *words, "--output", str(tmp_path / "x.json")]
    env = {**os.environ, "TMPDIR": str(folder), "COLLECTIVES_CACHE": "off"}
    with subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True) as program:
        end = time.monotonic() + 30
        while not list(folder.iterdir()) and time.monotonic() < end:
            time.sleep(0.05)
        assert list(folder.iterdir())
        time.sleep(0.2)  # the ranks are about to start, or have
        program.terminate()
        said = program.communicate(timeout=30)[1]
    assert program.returncode == 143
    assert said.endswith("x.json has the jobs that ended\n")
    assert not list(folder.iterdir())


@pytest.mark.hosts
@pytest.mark.processes
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_small_run_on_hosts(tmp_path: Path) -> None:
    output = tmp_path / "regret.json"
    output.write_text(json.dumps(document()))
    words = ("--hosts", "2", "--kinds", "broadcast", "--sizes", "8", "20000", "--held-out")
    quick = ("--budget", "3", "--cell", "0.05", "--output", str(output), "--no-page")
    subprocess.run(
        [sys.executable, "-m", "bench.regret", *words, *quick], cwd=ROOT, check=True, timeout=100
    )
    whole = json.loads(output.read_text())
    assert list(whole["ranks"]) == ["2", "3"]
    found = whole["hosts"]["2"]
    assert found["links"]["mbit"] == 1000
    assert found["transport"] == "tcp"
    assert found["predicting"]["costs"]["network"]["beta"] > 0
    for row in found["cells"]:
        tuned, rule = row["tuned"], row["rule"]  # as far as the budget went
        assert tuned["measured"] or tuned["choice"] == rule["choice"]
        assert ", wire, " in row["model"]["choice"]


def test_a_rank_that_fails_ends_the_job(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wrong = {"kinds": ["allsum"], "tuned": [8], "held_out": [], "budget": 0.1, "cell": 0.1}
    with pytest.raises(JobError, match="a rank ended with exit code"):
        on_machine(1, wrong | {"limit": 10.0})
    assert "allsum" in capfd.readouterr().err


def test_a_job_ends_when_its_time_is_over() -> None:
    with subprocess.Popen(["sleep", "60"]) as program:
        with pytest.raises(JobError, match="were not done in 0 s"):
            _await([program], 0.1)
        assert program.returncode is not None
