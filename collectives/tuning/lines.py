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
_TOLD = 8 << 10


def lines(cells: Sequence[Cell], p: int) -> list[Choice]:
    """Return the choices that follow: each from half way, in logarithms, to the size before it.

    Far beyond the last size that was raced the library's rules hold again.

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
        for i, cell in enumerate(row):
            begin = 0 if i == 0 else int((row[i - 1].nbytes * cell.nbytes) ** 0.5)
            short = cell.nbytes < _TOLD
            holds = far is None or short or cell.far == far
            if i > 0 and not short:
                begin = max(begin, _TOLD) if far is not None else begin
            best = cell.best
            line = _line(best if holds else replace(best, algorithm=RULE), begin, bool(far))
            if not of_kind or not _same(of_kind[-1], line):
                of_kind.append(line)
        if of_kind[-1].algorithm != RULE:
            of_kind.append(replace(of_kind[-1], nbytes=_BEYOND * row[-1].nbytes, algorithm=RULE))
        if any(line.algorithm != RULE for line in of_kind):
            found += of_kind
    return found


def _same(one: Choice, other: Choice) -> bool:
    if one.algorithm == other.algorithm == RULE:
        return True
    return replace(one, nbytes=0) == replace(other, nbytes=0)


def _line(choice: Choice, nbytes: int, far: bool) -> Choice:
    how = (choice.algorithm, choice.mode, choice.lag, choice.tile_bytes)
    return Choice(choice.kind, nbytes, *how, far)
