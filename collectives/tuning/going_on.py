# SPDX-License-Identifier: Apache-2.0
"""What a kept table lacks: the races that its time did not suffice for, and those that it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def was_cut_short(
    table: TunedTable, budget: float, kinds: Sequence[str], sizes: Sequence[int]
) -> bool:
    """Tell whether more than the budget of a table is there for what it lacks.

    Of one from an older version of the library nobody knows what it lacks.
    """
    if table.ranks == 1 or table.races is None or budget <= table.budget_s:
        return False
    done = {(race.kind, race.nbytes) for race in table.races if not race.hasty}
    return any((kind, nbytes) not in done for kind in kinds for nbytes in sizes)
