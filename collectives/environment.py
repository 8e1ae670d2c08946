# SPDX-License-Identifier: Apache-2.0
"""The environment variables that place a process in a job. collrun writes them, init() reads them.

==================== ========= ================================================================
COLLECTIVES_RANK     0 ... p-1 place of this process in the job
COLLECTIVES_SIZE     p >= 1    how many processes take part
COLLECTIVES_JOB      a name    the same for all processes of the job: printable text of at most
                               255 bytes; default "default"
COLLECTIVES_ATTEMPT  0, 1, ... counts restarts of a job, so that late-comers are refused; default 0
COLLECTIVES_TIMEOUT  seconds   bound of every call and of finding the others; default 300
COLLECTIVES_SILENCE  seconds   after which another machine that does not answer is taken for dead,
                               2 to 3600; default 15
COLLECTIVES_MASTER   a.b.c.d:n where rank 0 meets ranks of other hosts; without it all are on one
==================== ========= ================================================================

COLLECTIVES_RANK and COLLECTIVES_SIZE: set both or neither. Without them the variables of other
launchers count (:mod:`collectives.launchers`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collectives._ffi import check, ffi, lib, text
from collectives.errors import InvalidArgumentError
from collectives.launchers.launch import LARGEST, rank_and_size, shown, whole_number

if TYPE_CHECKING:
    from collectives.launchers.wire import Wire

RANK = "COLLECTIVES_RANK"
SIZE = "COLLECTIVES_SIZE"
JOB = "COLLECTIVES_JOB"
ATTEMPT = "COLLECTIVES_ATTEMPT"
TIMEOUT = "COLLECTIVES_TIMEOUT"
SILENCE = "COLLECTIVES_SILENCE"
TUNE = "COLLECTIVES_TUNE"
MOST_TUNING = 1e6  # seconds of it
KEPT, REFINE, MODEL = "kept", "refine", "model"  # as its value
MASTER = "COLLECTIVES_MASTER"
PLACEMENT = "COLLECTIVES_PLACEMENT"  # which the native layer reads, on one machine

SILENCES = (2.0, 3600.0)  # seconds; the kernel counts in whole ones, and needs two probes
_LONGEST_NAME = 255  # bytes, as of a file's name


@dataclass(frozen=True)
class Variable:
    """An environment variable that the library reads; ``default`` is "" where there is none."""

    name: str
    type: str
    default: str
    sentence: str


def variables() -> list[Variable]:
    """Return every variable that the library reads, from the table that it reads them by."""
    entry = ffi.new("coll_variable *")
    found = []
    for number in range(lib.coll_variable_count()):
        check(lib.coll_variable_get(number, entry))
        parts = (entry.name, entry.type, entry.fallback, entry.sentence)
        found.append(Variable(*(text(part) for part in parts)))
    return found


@dataclass(frozen=True)
class Place:
    """Where this process stands in its job.

    ``timeout`` and ``silence`` are in seconds, 0 means the default.
    ``wire`` is what connects ranks of several machines; None: all are on this one.
    ``trusted`` are the networks that this rank trusts, as text: ranks of one machine compare them.
    ``only_here``: why ranks are sought on this machine only, where a program may not know.
    """

    rank: int = 0
    size: int = 1
    job: str | None = None
    attempt: int = 0
    timeout: float = 0.0
    wire: Wire | None = None
    silence: float = 0.0
    trusted: str = ""
    only_here: str = ""


def place(variables: Mapping[str, str] | None = None) -> Place:
    """Read the place from the environment. Raises InvalidArgumentError where it makes no sense."""
    env = os.environ if variables is None else variables
    rank, size = 0, 1
    if RANK in env or SIZE in env:
        advice = "start the program with collrun, or set both, or neither"
        rank, size = rank_and_size(env, "collrun", RANK, SIZE, advice=advice)
    attempt = _attempt(env)
    timeout, silence = _seconds(env, TIMEOUT), silence_seconds(env)
    return Place(rank, size, _name(env), attempt, timeout, silence=silence)


def sensible_settings(
    variables: Mapping[str, str],
) -> tuple[Mapping[str, str], InvalidArgumentError | None]:
    """Return the variables without settings of no sense, and why the first of these has none.

    These are times and the attempt: by what is left a rank can meet the others, to tell them.
    """
    left, trouble = dict(variables), None
    for name, read in (
        (TIMEOUT, lambda: _seconds(left, TIMEOUT)),
        (SILENCE, lambda: silence_seconds(left)),
        (ATTEMPT, lambda: _attempt(left)),
    ):
        try:
            read()
        except InvalidArgumentError as error:
            trouble = trouble or error
            del left[name]
    return left, trouble


def silence_seconds(variables: Mapping[str, str]) -> float:
    """Return after how long a silent machine is dead, 0 where it is not set."""
    return _seconds(variables, SILENCE, *SILENCES)


def tuning(variables: Mapping[str, str] | None = None) -> float | str | None:
    """Return for how many seconds init() may tune, or KEPT, REFINE or MODEL; None: it leaves it.

    Raises InvalidArgumentError.
    """
    env = os.environ if variables is None else variables
    word = env.get(TUNE)
    if not word:  # empty: as if it were not set, as of COLLECTIVES_ALGORITHM
        return None
    if word in (KEPT, REFINE, MODEL):
        return word
    also = f", or {KEPT!r}, or {REFINE!r}, or {MODEL!r}"
    return _seconds(env, TUNE, most=MOST_TUNING, also=also)


def check_placement(variables: Mapping[str, str]) -> None:
    """Refuse a placement that there is not, on several machines, too: InvalidArgumentError."""
    value = variables.get(PLACEMENT, "auto")
    if value not in ("auto", "near", "far"):
        raise InvalidArgumentError(f"{PLACEMENT} is {shown(value)}; it must be auto, near or far")


def _attempt(env: Mapping[str, str]) -> int:
    return whole_number(env, ATTEMPT, 0, 0, LARGEST)


def _name(env: Mapping[str, str]) -> str | None:
    """Return the name of the job. It is quoted in error messages, so it must bear being printed."""
    name = env.get(JOB)
    if name is None:
        return None
    if not name:
        raise InvalidArgumentError(f"{JOB} is empty: give all ranks of the job one name")
    length = len(os.fsencode(name))
    if length > _LONGEST_NAME:
        raise InvalidArgumentError(
            f"{JOB} has {length} bytes, at most {_LONGEST_NAME} are allowed: "
            "give all ranks of the job one shorter name"
        )
    if not name.isprintable():  # control characters, and bytes that are no text
        raise InvalidArgumentError(
            f"{JOB}={name!r} has a character that cannot be printed: "
            "give all ranks of the job one name in plain text"
        )
    return name


def checked_silence(what: str, seconds: float) -> float:
    """Return a time of silence that the kernel can count. Raises InvalidArgumentError."""
    least, most = SILENCES
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not least <= seconds <= most:
        raise InvalidArgumentError(
            f"{what} is {seconds!r}: give the seconds after which another machine that does not "
            f"answer is taken for dead, from {least:g} to {most:g}"
        )
    return float(seconds)


def _seconds(
    env: Mapping[str, str], name: str, least: float = 0.0, most: float = 1e9, also: str = ""
) -> float:
    """Return the seconds of a variable, 0 where it is not set. ``also``: what else it may be."""
    written = env.get(name)
    if written is None:
        return 0.0
    try:
        seconds = float(written)
    except ValueError:
        seconds = -1.0
    if not seconds > 0 or not least <= seconds <= most:
        bounds = f"from {least:g} to {most:g}" if least > 0 else f"above 0 and at most {most:g}"
        raise InvalidArgumentError(
            f"{name}={shown(written)} is not a number of seconds {bounds}{also}"
        )
    return seconds
