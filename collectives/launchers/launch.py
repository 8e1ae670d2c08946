# SPDX-License-Identifier: Apache-2.0
"""Who a process is, as its launcher says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from collectives.errors import InvalidArgumentError

RENDEZVOUS = "COLLECTIVES_RENDEZVOUS"

# The native layer holds ranks in 32 bits; a job of one machine is far below this.
LARGEST = 2**31 - 1
_SHOWN = 24  # characters of a value in a sentence


@dataclass(frozen=True)
class Launch:
    """The place of this process among those that its launcher has started.

    ``directory`` is the channel over which ranks can exchange values before they are connected:
    "pmi1", "pmi2", "pmix", "torch", "mpi", "folder", "tcp", or "none", and then ``lack`` says what
    to do.
    ``master``: of "tcp", the host and port at which rank 0 meets the others.
    ``local_rank`` counts the ranks of this host; None, like ``hosts``: the launcher does not say.
    ``how`` names the variables that told. ``attempt`` counts restarts of the job.
    """

    launcher: str
    rank: int
    size: int
    directory: str
    how: str
    local_rank: int | None = None
    hosts: int | None = None
    job: str = "default"
    attempt: int = 0
    lack: str = ""
    master: tuple[str, int] | None = None


def rank_and_size(
    env: Mapping[str, str], launcher: str, rank_name: str, size_name: str, *, advice: str = ""
) -> tuple[int, int]:
    """Read both variables, or raise InvalidArgumentError with the one sentence that is wrong.

    ``advice`` says what to do where one is missing; "": what holds for any launcher.
    """
    what_to_do = advice or f"{launcher} sets both; set both, or take both out of the environment"
    for there, missing in ((rank_name, size_name), (size_name, rank_name)):
        if missing not in env:
            raise InvalidArgumentError(f"{there} is set but {missing} is not: {what_to_do}")
    size = whole_number(env, size_name, 1, 1, LARGEST)
    rank = whole_number(env, rank_name, 0, 0, LARGEST)
    if rank >= size:
        raise InvalidArgumentError(
            f"{rank_name}={rank} is not below {size_name}={size}: ranks count from 0 to {size - 1}"
        )
    return rank, size


def optional(env: Mapping[str, str], name: str, low: int = 0) -> int | None:
    """Read a variable that need not be there."""
    return whole_number(env, name, 0, low, LARGEST) if name in env else None


def whole_number(env: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """Read a variable that is a whole number from ``low`` to ``high``."""
    written = env.get(name)
    if written is None:
        return default
    # int() alone would take " 1", "1_0" and "+1", which no launcher writes, and no endless number.
    digits = written.isascii() and written.isdigit() and len(written) <= len(str(LARGEST))
    if not digits or not low <= int(written) <= high:
        raise InvalidArgumentError(
            f"{name}={shown(written)} is not an integer from {low} to {high}"
        )
    return int(written)


def shown(written: str) -> str:
    """Return a value as a sentence quotes it: of a long one the beginning."""
    return repr(written if len(written) <= _SHOWN else written[:_SHOWN] + "...")
