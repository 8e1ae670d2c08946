# SPDX-License-Identifier: Apache-2.0
"""Tables of races whose time was over too soon: a later tune() with more of it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import collectives as cl
from collectives.tuning import tunable, tuner
from collectives.tuning.going_on import cells_of, kept_races
from collectives.tuning.raced import Plan, Race
from collectives.tuning.table import Choice, TunedTable
from collectives.tuning.tuner import tuned
from collectives.tuning.wanted import KINDS, SHARED_SIZES, was_cut_short
from tests.python.ranks import on_ranks
from tests.python.tables import check_refused

RING = Plan("ring", "staged", 2, 65536, 1.25e-6)
RACES = (
    Race("allreduce", 8, False, False, (RING,)),
    Race("allreduce", 1024, None, True, (RING, replace(RING, algorithm="circulant"))),
)
TABLE = TunedTable(2, "here", "0.0", (Choice("allreduce", 0, "ring"),), 3.0, RACES)


class Turns:
    """A clock of which each look takes 50 ms: what is raced does not depend on the machine."""

    def __init__(self, comm: cl.Communicator, budget: float) -> None:
        """Begin with all of the budget."""
        self._left = budget

    def left(self) -> float:
        """Return the seconds that are left, on all ranks alike."""
        left, self._left = self._left, self._left - 0.05
        return left


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tuners look at such a clock, and deem time enough for the next size.

    What they do before the first race takes none of it.
    """
    monkeypatch.setattr(tunable, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    monkeypatch.setattr(tuner, "Clock", Turns)
    monkeypatch.setattr(tuner, "_least", lambda *_: 0.0)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache of the test's own."""
    monkeypatch.setenv("COLLECTIVES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_short_budget_does_not_spoil_the_cache(cache: Path) -> None:
    def tune(budget: float) -> TunedTable:
        first, second = on_ranks(2, lambda comm: comm.tune(budget))
        assert first == second
        (kept,) = cache.glob("tuned-*.json")
        assert TunedTable.load(kept) == first
        return TunedTable.load(kept)

    short = tune(0.001)
    assert short.races is not None
    assert len(short.races) == 1
    longer = tune(0.8)
    assert longer.races is not None
    assert len(longer.races) > 1
    assert longer.budget_s == 0.8
    (kept,) = cache.glob("tuned-*.json")
    written = kept.stat().st_mtime_ns
    for no_more in (0.8, 0.2):
        assert tune(no_more) == longer
    assert kept.stat().st_mtime_ns == written


def test_only_what_is_missing_is_raced() -> None:
    known = cells_of(replace(TABLE, races=(RACES[0], replace(RACES[0], nbytes=4096))))

    def work(comm: cl.Communicator) -> None:
        cells = tuned(comm, ("allreduce",), (8, 1024, 4096), 0.2, known=cells_of(TABLE))
        assert [cell.nbytes for cell in cells] == [8, 1024, 4096]
        assert cells[0] == cells_of(TABLE)[0]
        assert all(standing.samples > 0 for standing in cells[1].standings)  # it was hasty
        cells = tuned(comm, ("allreduce",), (8, 1024, 4096), 0.2, known=known)
        assert [cell.nbytes for cell in cells] == [8, 1024, 4096]
        assert (cells[0], cells[-1]) == tuple(known)
        none = tuned(comm, ("allreduce",), (8, 1024, 4096), -1.0, known=known)
        assert none == known

    on_ranks(2, work)


def test_what_was_cut_short() -> None:
    whole = tuple(replace(RACES[0], kind=kind, nbytes=n) for kind in KINDS for n in SHARED_SIZES)
    done = replace(TABLE, races=whole)
    for table, budget, short in (
        (TABLE, 4.0, True),
        (TABLE, 3.0, False),  # it had as much
        (done, 4.0, False),
        (replace(TABLE, races=whole[1:]), 4.0, True),
        (replace(TABLE, races=(replace(whole[0], hasty=True), *whole[1:])), 4.0, True),
        (replace(TABLE, races=None), 4.0, False),  # nobody knows
        (replace(TABLE, races=(), ranks=1), 4.0, False),
    ):
        assert was_cut_short(table, budget, KINDS, SHARED_SIZES) == short


def test_files_tell_of_races(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    TABLE.save(path)
    assert TunedTable.load(path) == TABLE
    assert kept_races(cells_of(TABLE)) == RACES
    document = json.loads(path.read_text())
    del document["races"], document["budget_s"]  # as an older version wrote it
    path.write_text(json.dumps(document))
    assert TunedTable.load(path) == replace(TABLE, budget_s=0.0, races=None)


def _race(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["races"][0].update({key: value})


def _plan(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["races"][0]["plans"][0].update({key: value})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda document: document.update(races=7), "no list of races"),
        (lambda document: document.update(races=[7]), "no race at place 0"),
        (lambda document: document.update(budget_s="3"), "how many seconds"),
        (_race("more", 7), "no race at place 0"),
        (_race("plans", []), "no race at place 0"),
        (_race("kind", ["allreduce"]), "impossible plan"),
        (_race("nbytes", 0), "impossible number"),
        (_race("far", "no"), "impossible number or word"),
        (_race("far", 1), "impossible number or word"),
        (_race("hasty", 0), "impossible number or word"),
        (_plan("algorithm", ["ring"]), "impossible plan"),
        (_plan("lag", 1.5), "impossible plan"),
        (_plan("tile_bytes", 1 << 62), "impossible plan"),
        (_plan("mode", ["staged"]), "impossible plan"),
        (_plan("seconds", float("nan")), "impossible plan"),
        (_plan("seconds", 7), "impossible plan"),
    ],
)
def test_races_that_make_no_sense(
    change: Callable[[dict[str, Any]], None], sentence: str, tmp_path: Path
) -> None:
    check_refused(TABLE, change, sentence, tmp_path)
