# SPDX-License-Identifier: Apache-2.0
"""What has won a race has to win once more, some time later."""

from __future__ import annotations

from dataclasses import replace

import pytest

import collectives as cl
from collectives.tuning.confirming import confirm, doubtful
from collectives.tuning.installed import chosen
from collectives.tuning.race import Runner, Standing
from collectives.tuning.table import Choice
from collectives.tuning.tuner import Cell, Clock
from tests.python.ranks import on_ranks

NBYTES = 4096
OTHER = Choice("allreduce", NBYTES, "ring", "staged", 1, 0)


def _cell(comm: cl.Communicator) -> Cell:
    usual = replace(chosen(comm, "allreduce", NBYTES)[0], far=False)
    standings = [Standing(OTHER, 1e-6, 20), Standing(usual, 2e-6, 20)]
    return Cell("allreduce", NBYTES, standings, usual=usual)


@pytest.mark.parametrize(("times", "stays"), [(0.5, True), (1.5, False), (0.99, False)])
def test_who_does_not_win_again_gives_way_to_the_rules(
    monkeypatch: pytest.MonkeyPatch, times: float, stays: bool
) -> None:
    # Of the calls that run no clock is asked: a test does not fail on speed.
    monkeypatch.setattr(
        Runner,
        "run",
        lambda self, calls: (0.0, calls * (times if self.choice.algorithm == "ring" else 1.0)),
    )

    def work(comm: cl.Communicator) -> tuple[Choice, Choice]:
        cell = _cell(comm)
        confirm(comm, [cell], Clock(comm, 5.0))
        assert len(cell.standings) == 2
        assert cell.usual is not None
        return cell.best, cell.usual

    for best, usual in on_ranks(3, work):
        assert best == (OTHER if stays else usual)


def test_without_time_what_has_won_stays() -> None:
    def work(comm: cl.Communicator) -> Choice:
        cell = _cell(comm)
        confirm(comm, [cell], Clock(comm, 0.0))
        return cell.best

    assert set(on_ranks(3, work)) == {OTHER}


def test_of_what_was_not_raced_or_is_usual_nothing_is_asked() -> None:
    def work(comm: cl.Communicator) -> None:
        won, known, none = _cell(comm), _cell(comm), Cell("allreduce", NBYTES)
        won.standings.reverse()
        known.usual = None  # of a kept table
        assert doubtful([won, known, none]) == []

    on_ranks(3, work)
