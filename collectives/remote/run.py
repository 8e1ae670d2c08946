# SPDX-License-Identifier: Apache-2.0
"""``collrun --hosts``: from its options to the outcome."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import click

from collectives import environment
from collectives.launchers.launch import RENDEZVOUS
from collectives.launchers.secret import SECRET_FILE
from collectives.launchers.wire import made_secret
from collectives.remote.hosts import shares
from collectives.remote.messages import Task, task_line
from collectives.remote.team import HostError, StoppedError, Team
from collectives.standard_output import UnwritableError
from collectives.supervise import Outcome, Printer

SSH = "COLLECTIVES_SSH"
# A password cannot be asked for: several hosts would ask at one time.
_USUAL = "ssh -o BatchMode=yes -o ConnectTimeout=10"
_OWN = (environment.RANK, environment.SIZE, environment.JOB, environment.ATTEMPT,
        environment.MASTER, RENDEZVOUS, SECRET_FILE, SSH)  # fmt: skip
_TAKEN_ALONG = ("PYTHONPATH", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Wishes:
    """The options of collrun that several hosts know beside those of one."""

    hosts: str
    ssh: str | None = None
    port: int = 0
    patience: float = 30.0
    variables: tuple[str, ...] = ()


def run_on_hosts(
    wishes: Wishes,
    ranks: int | None,
    line: Sequence[str],
    job: tuple[str, int, float],
    printers: Callable[[int], tuple[Printer, Printer]],
) -> tuple[Outcome, int]:
    """Run a job; return how it ended and how many ranks it had.

    ``job``: its name, attempt and time of grace. ``printers`` makes them for a number of ranks.
    """
    try:
        found = shares(wishes.hosts, ranks)
        total = found[-1].ranks.stop
        if total > 1024:
            raise ValueError(f"{total} ranks are too many: a job has 1 to 1024")
        name, attempt, grace = job
        task = Task(
            [], total, name, attempt, list(line), os.getcwd(), _variables(wishes.variables),
            grace, wishes.port, made_secret().hex(),
        )  # fmt: skip
        task_line(task)
    except ValueError as error:
        raise click.UsageError(f"--hosts: {error}.") from error
    reach = shlex.split(wishes.ssh or os.environ.get(SSH) or _USUAL)
    if not reach:
        raise click.UsageError("--ssh: there is no command in it.")
    try:
        team = Team(found, reach, task, printers(total), _complain, wishes.patience)
        return team.run(), total
    except OSError as error:
        if isinstance(error, BrokenPipeError | UnwritableError):
            raise
        raise click.ClickException(f"cannot run {reach[0]}: {error.strerror}") from error
    except HostError as error:
        raise click.ClickException(f"{error}") from error
    except StoppedError as error:
        sys.exit(128 + error.number)


def _variables(names: Sequence[str]) -> dict[str, str]:
    """Return what goes along to the hosts: settings of this library, and what was asked for."""
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise ValueError(f"{missing[0]} is to go along (--env), but it is not set here")
    own = {name for name in os.environ if name.startswith("COLLECTIVES_")} - set(_OWN)
    wanted = own | {name for name in _TAKEN_ALONG if name in os.environ} | set(names)
    return {name: os.environ[name] for name in sorted(wanted)}


def _complain(host: str, line: bytes) -> None:
    sink: BinaryIO = sys.stderr.buffer
    sink.write(f"[{host}] ".encode() + line + b"\n")
    sink.flush()
