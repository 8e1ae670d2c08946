# SPDX-License-Identifier: Apache-2.0
"""Races on their way into a table that is kept, and out of it again."""

from __future__ import annotations

from collections.abc import Iterable

from collectives.tuning.race import Standing
from collectives.tuning.raced import Plan, Race
from collectives.tuning.table import Choice, TunedTable
from collectives.tuning.tuner import NEAR_BEHIND, Cell

_MOST = 8  # plans of a race: what the next size is raced with


def kept_races(cells: Iterable[Cell]) -> tuple[Race, ...]:
    """Return what a table keeps of these."""
    return tuple(_kept(cell) for cell in cells)


def _kept(cell: Cell) -> Race:
    limit = NEAR_BEHIND * cell.standings[0].seconds
    near = [standing for standing in cell.standings if standing.seconds <= limit][:_MOST]
    plans = tuple(
        Plan(s.choice.algorithm, s.choice.mode, s.choice.lag, s.choice.tile_bytes, s.seconds)
        for s in near
    )
    return Race(cell.kind, cell.nbytes, cell.far, cell.hasty, plans)


def cells_of(table: TunedTable | None) -> list[Cell]:
    """Return the races that a table has kept."""
    races = () if table is None or table.races is None else table.races
    return [_cell(race) for race in races]


def _cell(race: Race) -> Cell:
    standings = [
        Standing(
            Choice(race.kind, race.nbytes, plan.algorithm, plan.mode, plan.lag, plan.tile_bytes),
            plan.seconds,
            0,
        )
        for plan in race.plans
    ]
    return Cell(race.kind, race.nbytes, standings, race.far, race.hasty)
