# SPDX-License-Identifier: Apache-2.0
"""A table of choices as a value: what each collective runs from which size on, and where."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from collectives.errors import InvalidArgumentError
from collectives.names import KINDS, algorithm_names, integer
from collectives.tuning.raced import Race, possible, races_in
from collectives.whole_file import write_whole

FORMAT = "collectives tuning"
VERSION = 1
LONGEST = 1 << 22  # bytes of a file
LIBRARY = "what the library chooses"
RULE = ""  # in the place of an algorithm: the library chooses again from here on
_KEYS = {"kind", "nbytes", "algorithm", "mode", "lag", "tile_bytes", "far"}


class TuningWarning(UserWarning):
    """A table that was to be used is not: the library chooses by itself."""


@dataclass(frozen=True, order=True)
class Choice:
    """What a collective runs from vectors of ``nbytes`` on.

    ``mode`` is "staged" or "inline" among ranks that share memory, else "wire"; ``lag`` counts the
    tiles between one round and the next, ``tile_bytes`` are the length of one (0: chunks travel
    whole); ``far``: while the cores share no cache. An ``algorithm`` of "": the library chooses
    again from here on.
    """

    kind: str
    nbytes: int
    algorithm: str
    mode: str = "staged"
    lag: int = 1
    tile_bytes: int = 0
    far: bool = False

    def __str__(self) -> str:
        """Return "ring, staged, lag 1, tiles of 65536"."""
        if self.algorithm == RULE:
            return LIBRARY
        tiles = f", tiles of {self.tile_bytes}" if self.tile_bytes else ""
        return f"{self.algorithm}, {self.mode}, lag {self.lag}{tiles}"


@dataclass(frozen=True)
class TunedTable:
    """Choices for ``ranks`` ranks of one kind of machine.

    ``machine`` tells where they were measured (collectives/tuning/machine.py), ``library`` by which
    version. ``races`` are those that were held, in ``budget_s`` seconds; None: an older version of
    the library did not say. ``predicted``: by the cost model, nothing was measured. A value:
    :meth:`save` and :meth:`load` keep it.
    """

    ranks: int
    machine: str
    library: str
    choices: tuple[Choice, ...]
    budget_s: float = 0.0
    races: tuple[Race, ...] | None = field(default=None, repr=False)
    predicted: bool = False

    def of(self, kind: str, nbytes: int, far: bool = False) -> Choice | None:
        """Return the choice for a vector of so many bytes; None where nothing was measured."""
        fitting = [
            c for c in self.choices if c.kind == kind and c.far == far and c.nbytes <= nbytes
        ]
        found = max(fitting, key=lambda c: c.nbytes, default=None)
        return None if found is None or found.algorithm == RULE else found

    def as_json(self) -> dict[str, Any]:
        """Return it as values for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "library": self.library,
            "machine": self.machine,
            "ranks": self.ranks,
            "choices": [asdict(choice) for choice in self.choices],
            **({"predicted": True} if self.predicted else {}),
            **self._raced(),
        }

    def _raced(self) -> dict[str, Any]:
        if self.races is None:
            return {}
        return {"budget_s": self.budget_s, "races": [asdict(race) for race in self.races]}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file, whole or not at all, and the folders that this lies in."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.to_json())

    def to_json(self) -> str:
        """Return the text of the file."""
        return json.dumps(self.as_json(), indent=1) + "\n"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TunedTable:
        """Read what :meth:`save` wrote.

        Raises:
            InvalidArgumentError: the file holds something else, or is of a newer version; the text
                says what.
            OSError: it cannot be read.
        """
        return table_in(content_of(path), str(path))


def content_of(path: str | os.PathLike[str]) -> bytes:
    """Return what a file holds, or more than a table may have of it."""
    if not Path(path).is_file():
        raise InvalidArgumentError(f"{path} is no file")
    with open(path, "rb") as file:
        return file.read(LONGEST + 1)


def table_in(content: bytes, name: str) -> TunedTable:
    """Return the table that the file ``name`` holds; InvalidArgumentError says what is wrong."""
    if len(content) > LONGEST:
        _refuse(name, f"has more than {LONGEST} bytes, which is no table")
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        _refuse(name, f"is not JSON: {error!s:.100}")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        _refuse(name, f"does not say that its format is '{FORMAT}'")
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        newer = isinstance(version, int) and version > VERSION
        what = "a newer version of the format" if newer else "no version that is known"
        _refuse(name, f"has {what}: this library reads version {VERSION}; tune again")
    ranks = integer(document.get("ranks"))
    machine, library = document.get("machine"), document.get("library")
    listed = document.get("choices")
    if ranks is None or ranks < 1 or not isinstance(machine, str) or not isinstance(library, str):
        _refuse(name, "does not say for how many ranks, which machine and library it is")
    if not isinstance(listed, list):
        _refuse(name, "has no list of choices")
    choices = tuple(_choices(listed, name))
    predicted = document.get("predicted", False)
    if not isinstance(predicted, bool):
        _refuse(name, "does not say whether it was predicted")
    return TunedTable(ranks, machine, library, choices, *_races(document, name), predicted)


def _races(document: dict[str, Any], name: str) -> tuple[float, tuple[Race, ...] | None]:
    """Return the seconds that there were for races, and these."""
    if "races" not in document:
        return 0.0, None
    budget = document.get("budget_s")
    if not isinstance(budget, int | float) or isinstance(budget, bool) or not 0 <= budget < 1e9:
        _refuse(name, "does not say how many seconds there were for its races")
    return float(budget), races_in(document["races"], lambda why: _refuse(name, why))


def _choices(listed: list[Any], name: str) -> Iterable[Choice]:
    names: dict[str, list[str]] = {}
    for number, one in enumerate(listed):
        if not isinstance(one, dict) or set(one) != _KEYS:
            _refuse(name, f"has no choice at place {number}: its keys are not those of one")
        kind, algorithm = one["kind"], one["algorithm"]
        known = isinstance(kind, str) and kind in KINDS
        if known and kind not in names:
            names[kind] = [RULE, *algorithm_names(KINDS[kind])]
        if not known or algorithm not in names[kind]:
            _refuse(name, f"names no algorithm of this library at place {number}: tune again")
        if not possible(one, "nbytes", "lag", "tile_bytes"):
            _refuse(name, f"has an impossible number or mode at place {number}")
        if not isinstance(one["far"], bool):
            _refuse(name, f"does not say near or far at place {number}")
        yield Choice(**one)


def _refuse(name: str, why: str) -> NoReturn:
    raise InvalidArgumentError(f"{name} {why}")
