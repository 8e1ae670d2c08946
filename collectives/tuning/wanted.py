# SPDX-License-Identifier: Apache-2.0
"""What tune() races unless it is told otherwise, and whether a kept table has all of it.

A start that finds a table imports this, and nothing that races.
"""

from __future__ import annotations

from collections.abc import Sequence

from collectives.tuning.table import TunedTable

KINDS = ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "alltoall")
# Odd sizes besides powers of two: what fits those alone would be chosen wrongly for all others.
SHARED_SIZES = (
    8, 96, 1024, 4096, 12_000, 32 << 10, 100_000, 256 << 10, 1 << 20, 3_000_000, 8 << 20, 64 << 20,
)  # fmt: skip
WIRE_SIZES = (8, 1024, 6000, 16 << 10, 64 << 10, 200_000, 1 << 20, 4 << 20)


def sizes_of(transport: str) -> Sequence[int]:
    """Return the bytes of the vectors that are raced among ranks that exchange them so."""
    return SHARED_SIZES if transport == "memory" else WIRE_SIZES


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
