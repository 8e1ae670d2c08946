# SPDX-License-Identifier: Apache-2.0
"""What the regret bench keeps, as values: cells of jobs, read from JSON and put into it.

A document has a job for each number of ranks of this machine ("ranks") and of shaped hosts
("hosts"). Each was measured by itself, so each has its own machine, with date and commit, and what
it was asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

PLACES = ("ranks", "hosts")
WAYS = ("tuned", "rule", "model")  # who chose: the table of tune(), the rules, the cost model
UNDECIDED = 0.05  # a cell whose best plan differs from itself by more


class DocumentError(ValueError):
    """A file holds no regrets; the text says what is wrong with it."""


@dataclass(frozen=True)
class Ratio:
    """Times of a plan over those of the best one: the median of pairs and its 95 % interval."""

    ratio: float
    low: float
    high: float
    choice: str = ""


@dataclass(frozen=True)
class Row:
    """One collective on one size: seconds of the best plan, and who is how far behind it.

    ``held_out``: tune() did not see this size. ``same``: the best plan over itself. ``ways``: those
    of ``WAYS`` that were raced.
    """

    kind: str
    nbytes: int
    held_out: bool
    best: str
    seconds: float
    same: Ratio
    ways: Mapping[str, Ratio]

    @property
    def undecided(self) -> bool:
        """Whether two runs of one plan differ too much for the cell to say anything."""
        return self.same.low < 1 - UNDECIDED or self.same.high > 1 + UNDECIDED


@dataclass(frozen=True)
class Team:
    """A job: so many ranks of this machine, or hosts with one rank each.

    ``left_out``: cells for which there was no time. ``machine``: facts and the date.
    ``predicting``: seconds in which the model made all its choices; None: it was not asked.
    """

    place: str  # of PLACES
    size: int
    rows: tuple[Row, ...]
    left_out: int
    machine: Mapping[str, Any]
    predicting: float | None

    @property
    def title(self) -> str:
        """What people call it."""
        return f"{self.size} {self.place}"

    @property
    def tabled(self) -> bool:
        """Whether there was a table; without one this number of ranks is held out."""
        return any("tuned" in row.ways for row in self.rows)


def load(path: Path) -> dict[str, Any]:
    """Return what a file holds, as plain values, checked.

    Raises:
        DocumentError: it cannot be read, is no JSON, or holds something else.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DocumentError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{path} is not JSON: {error!s:.100}") from None
    try:
        teams(document)
    except DocumentError as error:
        raise DocumentError(f"{path} holds no regrets: {error}; run `make regret` again") from None
    return _whole(document)


def teams(document: Any) -> list[Team]:
    """Return the jobs of a document: those of this machine first, by their number of ranks.

    Raises:
        DocumentError: a value is missing, or is of no use.
    """
    if not isinstance(document, dict) or not any(document.get(place) for place in PLACES):
        raise DocumentError("it has neither 'ranks' nor 'hosts'")
    common = document.get("machine", {})
    return [team for place in PLACES for team in _of_place(document, place, common)]


def _of_place(document: dict[str, Any], place: str, common: Any) -> Iterator[Team]:
    jobs = _of_type(document.get(place, {}), dict, place)
    for size, job in sorted(jobs.items(), key=lambda item: (len(item[0]), item[0])):
        where = f"{place}.{size}"
        if not size.isdecimal() or int(size) < 1:
            _refuse(where, "is for no number of ranks")
        values = _of_type(job, dict, where)
        cells = _of_type(values.get("cells"), list, f"{where}.cells")
        model = _of_type(values.get("predicting", {}), dict, f"{where}.predicting")
        predicting = model.get("seconds")
        yield Team(
            place=place,
            size=int(size),
            rows=tuple(_row(cell, f"{where}.cells[{i}]") for i, cell in enumerate(cells)),
            left_out=len(_of_type(values.get("left_out", []), list, f"{where}.left_out")),
            machine=_of_type(values.get("machine", common), dict, f"{where}.machine"),
            predicting=None if predicting is None else _number(predicting, f"{where}.predicting"),
        )


def _row(cell: Any, where: str) -> Row:
    values = _of_type(cell, dict, where)
    return Row(
        kind=_of_type(values.get("kind"), str, f"{where}.kind"),
        nbytes=int(_number(values.get("nbytes"), f"{where}.nbytes")),
        held_out=_of_type(values.get("held_out"), bool, f"{where}.held_out"),
        best=_of_type(values.get("best"), str, f"{where}.best"),
        seconds=_number(values.get("seconds"), f"{where}.seconds"),
        same=_ratio(values.get("same"), f"{where}.same"),
        ways={
            way: _ratio(values[way], f"{where}.{way}")
            for way in WAYS
            if values.get(way) is not None
        },
    )


def _ratio(value: Any, where: str) -> Ratio:
    values = _of_type(value, dict, where)
    ratio, low, high = (
        _number(values.get(key), f"{where}.{key}") for key in ("ratio", "low", "high")
    )
    choice: str = _of_type(values.get("choice", ""), str, f"{where}.choice")
    return Ratio(ratio, low, high, choice)


def _number(value: Any, where: str) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or value <= 0:
        _refuse(where, f"is {value!r:.40}, no number above 0")
    return float(value)


def _of_type(value: Any, cls: Any, where: str) -> Any:
    if not isinstance(value, cls):
        _refuse(where, f"is {value!r:.40}, no {cls.__name__}")
    return value


def _refuse(where: str, why: str) -> NoReturn:
    raise DocumentError(f"{where} {why}")


def _whole(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document in which each job has its own machine and what it was asked for.

    Before jobs were measured one by one, all of a file had these in common.
    """
    whole: dict[str, Any] = {place: dict(document.get(place, {})) for place in PLACES}
    for jobs in whole.values():
        for size, job in jobs.items():
            common = {k: document[k] for k in ("machine", "asked") if k in document}
            jobs[size] = {**common, **job}
    return whole


def merged(path: Path, place: str, size: int, job: dict[str, Any]) -> dict[str, Any]:
    """Return what a file holds, with a job that was measured in the place of the one before.

    Raises DocumentError where the file is there and holds something else.
    """
    whole = load(path) if path.exists() else {name: {} for name in PLACES}
    whole[place][str(size)] = job
    for name in PLACES:
        whole[name] = dict(sorted(whole[name].items(), key=lambda item: int(item[0])))
    return whole
