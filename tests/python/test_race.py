# SPDX-License-Identifier: Apache-2.0
"""Who wins a race of plans, by samples that are given."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from collectives.communicator import Communicator
from collectives.tuning.race import Buffers, Race, Runner, clearly_above, runners
from collectives.tuning.table import Choice
from tests.python.ranks import on_ranks


class Ran:
    """A candidate, and what its rounds took."""

    def __init__(self, name: str, seconds: list[float]) -> None:
        self.choice = Choice("allreduce", 8, name, "staged", 1, 0)
        self.seconds = seconds


def race_of(entered: list[Ran], favourite: Ran | None) -> Race:
    race = Race.__new__(Race)
    race.entered = cast("list[Runner]", list(entered))
    race.running = list(race.entered)
    race.favourite = cast("Runner | None", favourite)
    race.samples = {id(ran): ran.seconds for ran in entered}
    return race


def first_of(race: Race) -> str:
    return race.standings()[0].choice.algorithm


@pytest.mark.parametrize(
    ("faster", "samples", "wins"),
    [(0.99, 40, False), (0.97, 40, True), (0.97, 4, False), (0.9, 4, True), (1.2, 40, False)],
)
def test_the_favourite_loses_beyond_doubt_only(faster: float, samples: int, wins: bool) -> None:
    usual = Ran("usual", [1.0] * samples)
    other = Ran("other", [faster] * samples)
    assert first_of(race_of([other, usual], usual)) == ("other" if wins else "usual")
    assert first_of(race_of([other, usual], None)) == ("other" if faster < 1 else "usual")


def test_what_scatters_does_not_beat_the_favourite() -> None:
    lot = np.random.default_rng(3)
    impartial, partial = list[str](), list[str]()
    for _ in range(20):
        usual, *others = (Ran(str(i), lot.lognormal(0, 0.3, 40).tolist()) for i in range(13))
        impartial.append(first_of(race_of([*others, usual], None)))
        partial.append(first_of(race_of([*others, usual], usual)))
    assert impartial.count("0") < 10  # it is one of thirteen
    assert partial.count("0") == 20


def test_the_favourite_stays_in_the_race() -> None:
    runners = [Ran(str(i), [float(i + 1)] * 3) for i in range(4)]
    race = race_of(runners, runners[3])
    race.keep_within(1.5, 2)
    assert [cast(Any, r).choice.algorithm for r in race.running] == ["0", "3"]
    race.keep_within(5.0, 4)
    assert len(race.running) == 2
    assert first_of(race) == "0"


@pytest.mark.parametrize(
    ("logs", "told"), [([0.1] * 2, True), ([0.06, 0.2], False), ([0.03] * 20, True)]
)
def test_pairs_that_differ_clearly(logs: list[float], told: bool) -> None:
    assert clearly_above(np.array(logs)) is told


@pytest.mark.parametrize(
    ("transport", "nbytes", "alone", "each"),
    [
        ("tcp", 1024, False, 2.0),  # 4 s alone, 1 s each in rows
        ("tcp", 1024, True, 4.0),
        ("tcp", 1 << 20, False, 4.0),
        ("memory", 1024, False, 4.0),
    ],
)
def test_short_calls_between_machines_count_alone_and_in_rows(
    monkeypatch: pytest.MonkeyPatch, transport: str, nbytes: int, alone: bool, each: float
) -> None:
    usual = Choice("allreduce", nbytes, "ring", "staged", 1, 0)
    # Of the calls that run no clock is asked: a test does not fail on speed.
    monkeypatch.setattr(
        Runner, "run", lambda self, calls: (0.0, 4.0 if calls == 1 else 1.0 * calls)
    )
    said = ["memory"]
    monkeypatch.setattr(Communicator, "transport", property(lambda self: said[0]))

    def work(comm: Communicator) -> list[float]:
        buffers = Buffers("allreduce", nbytes, comm.size)
        (runner,) = runners(comm, [usual], buffers)
        comm.barrier()
        said[0] = transport
        race = Race(comm, [runner], buffers, alone=alone)
        race.rounds(3)
        return race.samples[id(runner)]

    for samples in on_ranks(2, work):
        assert samples == pytest.approx([each] * len(samples))
        assert len(samples) >= 3
