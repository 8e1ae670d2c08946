# SPDX-License-Identifier: Apache-2.0
"""What follows from races: which plan runs from which size on, on near cores and on far ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from collectives.tuning.table import RULE, Choice
from collectives.tuning.tuner import Cell

_BEYOND = 4  # times the last size: so far its winner is trusted
# Below that two ranks do not tell each other where their cores are (native/select/choose.cc): a
# plan for near cores and another one for far ones would make them.
TOLD = 8 << 10


def lines(cells: Sequence[Cell], p: int) -> list[Choice]:
    """Return the choices that follow: each from half way, in logarithms, to the size before it.

    Between two sizes at which the library's rules won with different plans they say from where on
    the second one runs: half way would be a worse guess. Far beyond the last size that was raced
    they hold again.

    What two ranks raced while their cores were near is for near cores, and so for far ones; where a
    size was not raced on such cores, or they were moved meanwhile, the rules hold. Short vectors
    run one plan wherever the cores are; among more than two ranks all do, since sums must have the
    same bits.
    """
    if p > 2:
        near = _on_cores(cells, None)
        return near + [replace(choice, far=True) for choice in near]
    return [line for far in (False, True) for line in _on_cores(cells, far)]


def _on_cores(cells: Sequence[Cell], far: bool | None) -> list[Choice]:
    """Return the lines of what was raced on such cores; None: on any."""
    found: list[Choice] = []
    for kind in dict.fromkeys(cell.kind for cell in cells):
        row = sorted((c for c in cells if c.kind == kind), key=lambda c: c.nbytes)
        of_kind: list[Choice] = []
        for before, cell in zip([None, *row], row, strict=False):
            best = cell.best if _holds(cell, far) else replace(cell.best, algorithm=RULE)
            if before is not None and _by_rules(before, cell, far):
                of_kind.append(_line(replace(best, algorithm=RULE), before.nbytes + 1, bool(far)))
                of_kind.append(_line(best, cell.nbytes, bool(far)))
                continue
            line = _line(best, _half_way(before, cell, far), bool(far))
            if not of_kind or not _same(of_kind[-1], line):
                of_kind.append(line)
        if of_kind[-1].algorithm != RULE:
            of_kind.append(replace(of_kind[-1], nbytes=_BEYOND * row[-1].nbytes, algorithm=RULE))
        if any(line.algorithm != RULE for line in of_kind):
            found += of_kind
    return found


def _holds(cell: Cell, far: bool | None) -> bool:
    """Whether what was raced holds on such cores."""
    return far is None or cell.nbytes < TOLD or cell.far == far


def _by_rules(before: Cell, cell: Cell, far: bool | None) -> bool:
    """Whether the rules have won at both sizes, and run different plans there."""
    won = all(one.best == one.usual and _holds(one, far) for one in (before, cell))
    return won and not _same(before.best, cell.best)


def _half_way(before: Cell | None, cell: Cell, far: bool | None) -> int:
    if before is None:
        return 0
    begin = int((before.nbytes * cell.nbytes) ** 0.5)
    return begin if far is None or cell.nbytes < TOLD else max(begin, TOLD)


def _same(one: Choice, other: Choice) -> bool:
    if one.algorithm == other.algorithm == RULE:
        return True
    return replace(one, nbytes=0) == replace(other, nbytes=0)


def _line(choice: Choice, nbytes: int, far: bool) -> Choice:
    how = (choice.algorithm, choice.mode, choice.lag, choice.tile_bytes)
    return Choice(choice.kind, nbytes, *how, far)
