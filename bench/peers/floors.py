# SPDX-License-Identifier: Apache-2.0
"""Loops written by hand (bench/limits), timed between the blocks of a cell that a goal allows it.

They run in two processes of their own, while those of the libraries are asleep.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from bench.limits.floors import net
from bench.limits.judge import where
from bench.limits.program import floors, program
from bench.peers.cells import Cell

program_once = cache(program)  # built, or found to be up to date


@dataclass(frozen=True)
class FloorBlock:
    """The microseconds of a call by each way, and the placement: "" or mixed where both were."""

    placement: str
    ways: dict[str, float]


def floor_block(cell: Cell) -> FloorBlock:
    """Time every way once. Raises ProgramError where the program cannot be built or run."""
    (block,) = floors(program_once(), [cell.nbytes], [cell.kind])
    ways = {way: net(block, ns) / 1e3 for way, ns in block["hands"].items()}
    return FloorBlock(where(block), ways)
