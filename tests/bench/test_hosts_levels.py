# SPDX-License-Identifier: Apache-2.0
"""Hosts of several ranks: which algorithms are measured, what is asked of ours, a short run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.hosts import levels
from bench.hosts.goals import MBIT, VOID, M
from bench.hosts.levels import AUTOMATIC, FLAT, HOSTS, RING, Level, judge, ways, worth
from bench.hosts.records import Block, Record, bound
from bench.peers.cells import Cell
from bench.peers.libraries import TeamName
from bench.peers.statistics import MET, MISSED
from bench.record import ROOT
from tests.hosts.tools import missing

CELL = Cell("allreduce", "float32", HOSTS, 16 * M)
CHAIN = TeamName(FLAT, "chain")


def level(each: int, ring: float, chain: float = 1.0, traffic: float = 1.01) -> Level:
    """Ours at 0.9 of the link; `ring`, `chain`: their times over ours."""
    record = Record(CELL, MBIT)
    ours = bound(CELL, MBIT) / 0.9
    for turn in range(3):
        sent = round(HOSTS * CELL.nbytes * traffic)
        for way, over in ((AUTOMATIC, 1.0), (RING, ring), (CHAIN, chain)):
            record.add(way, turn, Block(ours * over, 1, sent), 0)
    return Level(each, record)


def test_all_flat_algorithms_stand_beside_our_choice() -> None:
    assert ways(4)[0] == AUTOMATIC
    assert {RING, CHAIN} < set(ways(4))
    names = {way.way for way in ways(6)}
    assert "ring" in names
    assert "recursive_halving" in {way.way for way in ways(8)}
    assert len(ways(8)) == len(set(ways(8)))


def test_who_takes_two_rings_is_tried_once() -> None:
    slow = TeamName(FLAT, "slow")
    assert worth({AUTOMATIC: 9.0, RING: 1.0, CHAIN: 2.0, slow: 2.01}) == [AUTOMATIC, RING, CHAIN]


@pytest.mark.parametrize(("each", "asked"), [(2, 1.4), (4, 1.6)])
def test_the_ring_is_judged_by_the_ranks_of_a_host(each: int, asked: float) -> None:
    verdicts = [judge(level(each, ring))[0].verdict for ring in (asked + 0.01, asked - 0.01)]
    assert verdicts == [MET, MISSED]
    assert judge(level(3, 1.0))[0].goal is None


def test_the_best_flat_one_and_the_bytes_are_judged() -> None:
    assert [row.verdict for row in judge(level(2, 1.5, 0.98))[:3]] == [MET, MET, MET]
    assert judge(level(2, 1.5, 0.96))[1].verdict == MISSED
    assert judge(level(2, 1.5, traffic=1.09))[2].verdict == MISSED


def test_fewer_bytes_than_the_bound_void_the_rows() -> None:
    assert {row.verdict for row in judge(level(2, 1.5, traffic=0.9))[:3]} == {VOID}


def test_a_wrong_result_of_any_way_is_told() -> None:
    made = level(2, 1.5)
    for way, count in ((AUTOMATIC, 1), (RING, 2), (CHAIN, 3)):
        made.record.add(way, 0, Block(1.0, 1, HOSTS * CELL.nbytes * 2), count)
    assert sorted(row.wrong for row in judge(made) if row.wrong) == [1, 2, 3]


def test_without_root_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(levels, "missing", lambda: "only root may make hosts.")
    assert levels.main([]) == 2
    assert capsys.readouterr().err == "bench.hosts.levels: only root may make hosts.\n"


@pytest.mark.hosts
@pytest.mark.processes
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_short_run_measures_all_ways_and_counts(tmp_path: Path) -> None:
    output = tmp_path / "levels.json"
    options = ["--rounds", "1", "--each", "2", "--mbit", "9000", "--output", str(output)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.hosts.levels", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "allreduce of 16 MiB, links of 9000 Mbit/s" in done.stdout, done.stderr
    found = json.loads(output.read_text(encoding="utf-8"))
    (one,) = found["levels"]
    assert (one["each"], one["wrong"]) == (2, {})
    assert {"ours/automatic", "flat/ring", "flat/chain"} <= set(one["tried"])
    assert 1.0 <= one["teams"]["ours/automatic"]["traffic"]["median"] < 1.08
    assert one["teams"]["flat/ring"]["traffic"]["median"] > 1.45
