# SPDX-License-Identifier: Apache-2.0
"""Two sets of measurements held against each other: what became slower, and is it beyond doubt."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from collectives.errors import InvalidArgumentError
from collectives.intervals import of_median, of_shift
from collectives.topology.checked import shown

Logs = npt.NDArray[np.float64]

SLACK = 1.05  # times as long: below that nothing is called slower
LONGEST = 1 << 28  # bytes of a file
OURS = "ours"
_WORDS: dict[type, str] = {dict: "object", list: "list", str: "text"}
T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """What a file holds: logarithms of the times of each row, or of ratios to a peer.

    ``beside_peers``: of every round the ratio of our time to that of another library, measured in
    the same round; else microseconds of the blocks of a run.
    """

    name: str
    beside_peers: bool
    cpu: str
    rows: dict[str, Logs] = field(hash=False)


@dataclass(frozen=True)
class Compared:
    """A row: how many times as long, with a 95 % interval.

    ``verdict`` is "slower" or "faster" (beyond doubt by more than 5 %), "alike", or "unsure".
    """

    what: str
    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """What comes of it."""
        if self.low > SLACK:
            return "slower"
        if self.high < 1 / SLACK:
            return "faster"
        return "alike" if self.low > 1 / SLACK and self.high < SLACK else "unsure"


def against(old: Measured, new: Measured) -> list[Compared]:
    """Compare the rows that both have: all differences between a block of one and of the other.

    Raises InvalidArgumentError where the files are of different kinds or have no row in common.
    """
    if old.beside_peers != new.beside_peers:
        raise InvalidArgumentError(
            f"{old.name} and {new.name} cannot be compared: one has times, the other ratios"
        )
    common = [what for what in old.rows if what in new.rows]
    if not common:
        raise InvalidArgumentError(f"{old.name} and {new.name} have no row in common")
    return [_of(what, *of_shift(old.rows[what], new.rows[what])) for what in common]


def beside_peers(measured: Measured) -> list[Compared]:
    """Return our times over those of each peer, round by round.

    Raises InvalidArgumentError where the file has no peers.
    """
    if not measured.beside_peers:
        raise InvalidArgumentError(
            f"{measured.name} has the times of one library: give another file to compare it with"
        )
    return [paired(what, logs) for what, logs in measured.rows.items()]


def paired(what: str, logs: Logs) -> Compared:
    """Return the median of paired log ratios, and its interval."""
    return _of(what, float(np.median(logs)), *of_median(logs))


def _of(what: str, *logs: float) -> Compared:
    return Compared(what, *(float(np.exp(log)) for log in logs))


# ---- files ---------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> Measured:
    """Return what a file of ``collbench KIND --json`` or of ``python -m bench.peers`` holds.

    Raises InvalidArgumentError, which says what is wrong with it, or OSError.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        _refuse(name, f"has more than {LONGEST} bytes")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        _refuse(name, f"is not JSON: {error!s:.100}")
    if not isinstance(document, dict):
        _refuse(name, "holds no measurements")
    machine = document.get("machine")
    cpu = str(machine.get("cpu", "")) if isinstance(machine, dict) else ""
    has_cells = isinstance(document.get("cells"), list)
    try:
        if has_cells:
            rows = dict(_of_peers(document["cells"]))
        elif isinstance(document.get("rows"), list):
            rows = dict(_of_collbench(document["rows"]))
        else:
            raise TypeError("it has neither rows nor cells")
    except KeyError as error:
        _refuse(name, f"is neither of collbench nor of bench.peers: the key {error} is missing")
    except (TypeError, ValueError, ArithmeticError) as error:
        _refuse(name, f"is neither of collbench nor of bench.peers: {error!s:.100}")
    if not rows:
        _refuse(name, "has no row with times of several blocks: measure again")
    return Measured(name, has_cells, cpu, rows)


def _of_collbench(rows: Sequence[Any]) -> Iterator[tuple[str, Logs]]:
    for row in rows:
        blocks = _of_class(dict, "a row", row).get("blocks") or []
        _of_class(list, "blocks", blocks)
        if len(blocks) < 2:
            continue
        op = "" if row["op"] == "none" else f" {row['op']}"
        mode = "" if row["mode"] == "auto" else f" {row['mode']}"
        what = (
            f"{row['kind']}{op} {row['dtype']} {row['size']} B, {row['ranks']} ranks, "
            f"{row['algorithm']}{mode}"
        )
        yield what, _logs(blocks)


def _of_peers(cells: Sequence[Any]) -> Iterator[tuple[str, Logs]]:
    for cell in cells:
        _of_class(dict, "a cell", cell)
        where = f"{cell['kind']} {cell['dtype']} {cell['nbytes']} B, {cell['ranks']} ranks"
        for place, sheet in _of_class(dict, "sheets", cell["sheets"]).items():
            blocks = _of_class(dict, "blocks", _of_class(dict, "a sheet", sheet)["blocks"])
            teams = {team: _rounds(line) for team, line in blocks.items()}
            ours = [team for team in teams if team.partition("/")[0] == OURS]
            for own, peer in itertools.product(ours, sorted(teams.keys() - set(ours))):
                both = sorted(teams[own].keys() & teams[peer].keys())
                if len(both) > 1:
                    way = own.partition("/")[2]
                    pairs = [teams[own][turn] / teams[peer][turn] for turn in both]
                    yield f"{where}, {place}: {way} / {peer}", _logs(pairs)


def _rounds(line: str) -> dict[int, float]:
    """Read ``round microseconds, ...``."""
    text = _of_class(str, "a team's blocks", line)
    pairs = (block.split() for block in text.split(", ") if block)
    return {int(turn): float(microseconds) for turn, microseconds in pairs}


def _logs(values: Sequence[float]) -> Logs:
    found = np.array(values, np.float64)
    if found.ndim != 1 or not (np.isfinite(found).all() and (found > 0).all()):
        raise ValueError("a time is no number above 0")
    return np.log(found)


def _of_class(kind: type[T], what: str, value: Any) -> T:
    """Return a value that is of the class which JSON has for it."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} is {shown(value)}, which is no {_WORDS[kind]}")
    return value


def _refuse(name: str, why: str) -> NoReturn:
    raise InvalidArgumentError(f"{name} {why}")
