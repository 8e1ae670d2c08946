# SPDX-License-Identifier: Apache-2.0
"""The ranks of collbench: starts them, hears them, and says which one failed."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

from collectives import environment
from collectives.launch import closing_line
from collectives.supervise import Job, Outcome

Event = dict[str, Any]


class RankFailedError(Exception):
    """A rank has failed; the text says which and why."""


class Asked(Protocol):
    """What ranks are asked to do, by the program that they run."""

    module: ClassVar[str]

    def as_json(self) -> str:
        """Write it for the command line."""


class Team:
    """`size` processes that work on a spec."""

    def __init__(self, size: int, spec: Asked, hear: Callable[[Event], None]) -> None:
        """Start the ranks; `hear` gets what rank 0 reports. Call this before starting threads."""
        self._size = size
        self._hear = hear
        self._failures: dict[int, str] = {}
        self._errors: list[str] = []
        job = secrets.token_hex(8)
        places = [_place(rank, size, job) for rank in range(size)]
        command = [*_python(), "-m", spec.module, spec.as_json()]
        self._job = Job(command, [os.environ | place for place in places], (self._out, self._err))

    def run(self) -> None:
        """Wait until all ranks are done. Raises RankFailedError, KeyboardInterrupt for Ctrl-C."""
        outcome = self._job.run()
        if outcome.passed_on:
            raise KeyboardInterrupt  # what the ranks say of it is of no interest
        sys.stderr.write("".join(self._errors))
        if outcome.culprit is not None:
            raise RankFailedError(self._why(outcome))

    def _why(self, outcome: Outcome) -> str:
        assert outcome.culprit is not None
        culprit = outcome.culprit.number
        if culprit in self._failures:
            return f"rank {culprit} failed: {self._failures[culprit]}"
        return closing_line(outcome, self._size)

    def _out(self, rank: int, line: bytes) -> None:
        event: Event = json.loads(line)
        if "failed" in event:
            self._failures[rank] = event["failed"]
        elif "warning" in event:
            self._errors.append(f"collbench: warning: {event['warning']}\n")
        else:
            self._hear(event)

    def _err(self, rank: int, line: bytes) -> None:
        self._errors.append(f"[{rank}] {line.decode(errors='replace')}")


def _python() -> list[str]:
    """Return this Python; the ranks must not take a package for ours that lies in the way."""
    here = Path(__file__).resolve().parents[2] == Path.cwd()
    return [sys.executable] if here else [sys.executable, "-P"]


def _place(rank: int, size: int, job: str) -> dict[str, str]:
    return {
        environment.RANK: str(rank),
        environment.SIZE: str(size),
        environment.JOB: job,
        environment.ATTEMPT: "0",
    }
