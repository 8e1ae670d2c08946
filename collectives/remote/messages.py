# SPDX-License-Identifier: Apache-2.0
"""What collrun and its agent on a host say to each other: lines, over the pipes of ssh.

collrun speaks: the task, as JSON; ``master ADDRESS:PORT``, upon which the ranks start; then
``signal NUMBER`` and ``harsher`` as need be. The end of the pipe ends the ranks.

The agent speaks: its greeting, behind whatever a login shell prints; ``m ADDRESS PORT NETWORK``,
where rank 0 would meet the others, and a word for the network that it is in; then for each rank
lines of output (``o RANK TEXT``) and of errors (``e RANK TEXT``), pieces of long ones in capitals
(``O``, ``E``), and its end (``x RANK CODE PID ENDED VICTIM``: whether the agent ended it, and
whether it failed because of another rank).
``f TEXT`` says why there is no more.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from collectives import __version__

GREETING = f"collectives agent {__version__}".encode()
GREETS = b"collectives agent "
LONGEST = 60_000  # bytes of a task: a pipe takes it at once, so nobody waits to write it


@dataclass(frozen=True)
class Task:
    """What an agent is to do. ``secret`` never stands on a command line or in an environment."""

    ranks: list[int]
    size: int
    job: str
    attempt: int
    command: list[str]
    folder: str
    variables: dict[str, str]
    grace: float
    port: int = 0
    secret: str = field(default="", repr=False)


def task_line(task: Task) -> bytes:
    """Return a task as a line. Raises ValueError where it is too long."""
    line = json.dumps(asdict(task)).encode() + b"\n"
    if len(line) > LONGEST:
        raise ValueError(f"command and variables have {len(line)} bytes, {LONGEST} can be sent")
    return line


def read_task(line: bytes) -> Task:
    """Return the task of a line. Raises ValueError where it is none."""
    try:
        return Task(**json.loads(line))
    except (TypeError, ValueError) as error:
        raise ValueError(f"no task came from collrun: {error}") from error
