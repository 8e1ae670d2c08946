# SPDX-License-Identifier: Apache-2.0
"""What the native attack on the provers writes, and what brute force says to it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from tests.mutation.brute_force import fault_of
from tests.mutation.values import Trees

ORIGINAL = "none"


@dataclass(frozen=True)
class Mutant:
    """A schedule or plan with one thing changed; ``message`` is why it was rejected, or ""."""

    level: str
    subject: str
    mutator: str
    change: str
    message: str
    trees: Trees
    words: list[int]

    def __str__(self) -> str:
        said = f" ({self.message})" if self.message else ""
        return f"{self.level} {self.subject}: {self.mutator}: {self.change}{said}"


@dataclass(frozen=True)
class Score:
    """How many mutants were made, how many keep structure, matching and cost, and so on."""

    level: str
    mutator: str
    made: int
    quiet: int
    rejected: int
    alone: dict[str, int]  # by name of a check: how many it rejects if nothing else is looked at


@dataclass(frozen=True)
class Report:
    """All that one attack has found."""

    originals: list[Mutant] = field(default_factory=list)
    survivors: list[Mutant] = field(default_factory=list)
    rejected: list[Mutant] = field(default_factory=list)  # a sample
    scores: list[Score] = field(default_factory=list)

    def total(self, level: str) -> Score:
        """The score of all mutators of schedules, or of plans."""
        return next(s for s in self.scores if (s.level, s.mutator) == (level, "all"))


def load(path: Path) -> Report:
    """Read a file of one JSON object a line."""
    report = Report()
    for line in path.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        if found["level"].endswith(" score"):
            found["level"] = found["level"].removesuffix(" score")
            report.scores.append(Score(**found))
            continue
        trees = Trees(*(bool(found.pop(name)) for name in Trees.__dataclass_fields__))
        mutant = Mutant(trees=trees, **found)
        if mutant.mutator == ORIGINAL:
            report.originals.append(mutant)
        elif mutant.message:
            report.rejected.append(mutant)
        else:
            report.survivors.append(mutant)
    return report


def merged(reports: Iterable[Report]) -> Report:
    """Join the reports of several attacks."""
    report = Report()
    for part in reports:
        report.originals.extend(part.originals)
        report.survivors.extend(part.survivors)
        report.rejected.extend(part.rejected)
        report.scores.extend(part.scores)
    return report


def _fault(subject: tuple[list[int], Trees, int]) -> str | None:
    return fault_of(*subject)


def faults(mutants: Iterable[Mutant], seeds: int) -> list[str | None]:
    """Run every mutant ``seeds`` times, on all cores; the faults in the order of the mutants."""
    subjects = [(mutant.words, mutant.trees, seeds) for mutant in mutants]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(_fault, subjects, chunksize=8))
