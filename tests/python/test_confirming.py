# SPDX-License-Identifier: Apache-2.0
"""What has won a race, or seems to, has to win once more, some time later."""

from __future__ import annotations

from dataclasses import replace

import pytest

import collectives as cl
from collectives.tuning.confirming import confirm, matches
from collectives.tuning.installed import chosen
from collectives.tuning.race import Runner, Standing
from collectives.tuning.table import Choice
from collectives.tuning.tuner import Cell, Clock
from tests.python.ranks import on_ranks

NBYTES = 4096
OTHER = Choice("allreduce", NBYTES, "ring", "staged", 1, 0)


def _cell(comm: cl.Communicator, first: bool = True) -> Cell:
    usual = replace(chosen(comm, "allreduce", NBYTES)[0], far=False)
    standings = [Standing(OTHER, 1e-6, 20), Standing(usual, 2e-6, 20)]
    return Cell("allreduce", NBYTES, standings if first else standings[::-1], usual=usual)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("times", "wins"), [(0.5, True), (1.5, False), (0.99, False)])
def test_who_is_not_faster_beyond_doubt_gives_way_to_the_rules(
    monkeypatch: pytest.MonkeyPatch, times: float, wins: bool, first: bool
) -> None:
    # Of the calls that run no clock is asked: a test does not fail on speed.
    monkeypatch.setattr(
        Runner,
        "run",
        lambda self, calls: (0.0, calls * (times if self.choice.algorithm == "ring" else 1.0)),
    )

    def work(comm: cl.Communicator) -> tuple[Choice, Choice]:
        cell = _cell(comm, first)
        confirm(comm, [cell], Clock(comm, 5.0))
        assert len(cell.standings) == 2
        assert cell.usual is not None
        return cell.best, cell.usual

    for best, usual in on_ranks(3, work):
        assert best == (OTHER if wins else usual)


def test_without_time_what_has_won_stays() -> None:
    def work(comm: cl.Communicator) -> Choice:
        cell = _cell(comm)
        confirm(comm, [cell], Clock(comm, 0.0))
        return cell.best

    assert set(on_ranks(3, work)) == {OTHER}


def test_a_plan_that_wins_in_one_look_of_three_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = {"ring": 0}

    def run(self: Runner, calls: int) -> tuple[float, float]:
        if self.choice.algorithm != "ring":
            return 0.0, calls * 1.0
        looks["ring"] += 1  # by all ranks: the first third of all is fast
        return 0.0, calls * (0.5 if looks["ring"] < 60 else 1.5)

    monkeypatch.setattr(Runner, "run", run)

    def work(comm: cl.Communicator) -> bool:
        cell = _cell(comm)
        confirm(comm, [cell], Clock(comm, 5.0))
        return cell.best == cell.usual

    assert all(on_ranks(3, work))


def test_of_what_was_not_raced_or_is_not_faster_nothing_is_asked() -> None:
    def work(comm: cl.Communicator) -> None:
        slower, known, none = _cell(comm), _cell(comm), Cell("allreduce", NBYTES)
        assert slower.usual is not None
        slower.standings = [Standing(slower.usual, 1e-6, 20), Standing(OTHER, 2e-6, 20)]
        known.usual = None  # of a kept table
        assert matches([slower, known, none]) == []
        assert len(matches([_cell(comm), _cell(comm, first=False)])) == 2

    on_ranks(3, work)
