# SPDX-License-Identifier: Apache-2.0
"""A figure beside what is asked of it, and how a program of such rows ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.hosts.goals import LEAST_ROUNDS, VOID
from bench.hosts.records import Spread
from bench.hosts.report import spread
from bench.peers.report import Text
from bench.peers.statistics import INCOMPLETE, MET, MISSED
from bench.record import RESULTS, save


@dataclass(frozen=True)
class Goal:
    """What a median is asked to be: at least `bound`, or at most."""

    bound: float
    most: bool = False

    def __str__(self) -> str:
        return f"{'<=' if self.most else '>='} {self.bound:g}"

    def reached(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value <= self.bound if self.most else value >= self.bound


@dataclass(frozen=True)
class Row:
    """A figure of several rounds. `goal`: None where it is told only; `void`: why it says nothing.

    `wrong`: elements of results that were not what NumPy has.
    """

    what: str
    found: Spread | None
    goal: Goal | None = None
    void: str | None = None
    wrong: int = 0

    @property
    def verdict(self) -> str:
        """What comes of it; "" without a goal."""
        if self.void is not None:
            return VOID
        if self.goal is None:
            return ""
        if self.found is None or self.found.count < LEAST_ROUNDS:
            return INCOMPLETE
        return MET if self.goal.reached(self.found.median) else MISSED

    def json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "what": self.what,
            "found": asdict(self.found) if self.found is not None else None,
            "goal": str(self.goal) if self.goal is not None else None,
            "verdict": self.verdict,
            "void": self.void,
            "wrong": self.wrong,
        }


def options(program: str, text: str | None, output: str) -> argparse.ArgumentParser:
    """Return a parser of what all these programs take."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=text)
    parser.add_argument("--rounds", type=positive, default=5, help="of each figure (5)")
    parser.add_argument(
        "--output", type=Path, default=RESULTS / output, help=f"(bench/results/{output})"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    return parser


def positive(text: str) -> int:
    """Read a number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def finish(
    chosen: argparse.Namespace, title: str, rows: Sequence[Row], document: dict[str, Any]
) -> int:
    """Write, print; a wrong or void row, or with --strict one that is not met, is 1."""
    save(chosen.output, {**document, "rows": [row.json() for row in rows]})
    heads = ["figure", "rounds", "median [lowest, highest]", "goal", "verdict"]
    Text(title, heads, [_line(row) for row in rows]).show()
    for row in rows:
        if row.void is not None:
            print(f"void: {row.what}: {row.void}")
        if row.wrong:
            print(f"wrong: {row.wrong} elements, {row.what}")
    print(f"{chosen.output}")
    return code(rows, chosen.strict)


def code(rows: Sequence[Row], strict: bool) -> int:
    """Return how the program ends."""
    wrong = any(row.wrong or row.void is not None for row in rows)
    return 1 if wrong or (strict and any(row.verdict not in ("", MET) for row in rows)) else 0


def failed(program: str, error: object) -> int:
    """Say why there are no figures."""
    sys.stderr.write(f"{program}: {error}\n")
    return 2


def _line(row: Row) -> list[str]:
    count = str(row.found.count) if row.found is not None else "0"
    goal = str(row.goal) if row.goal is not None else ""
    return [row.what, count, spread(row.found), goal, row.verdict]
