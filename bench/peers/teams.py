# SPDX-License-Identifier: Apache-2.0
"""A team of ranks that lives for the whole run, and sleeps while another is measured."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from bench.peers.channel import Channel, Message
from bench.peers.libraries import LIBRARIES, TeamName
from bench.peers.ranks.lineup import size
from bench.record import ROOT

MEETING_S = 90.0
ANSWER_S = 120.0
GRACE_S = 5.0
_MOMENTS = ("first", "last")

Durations = npt.NDArray[np.float64]
Launcher = subprocess.Popen[Any]


class TeamError(Exception):
    """A team is of no more use; the text says why."""


@dataclass
class _Rank:
    channel: Channel
    process: int  # a descriptor of it: numbers may be given away again


@dataclass
class Result:
    """What a block gave: the slowest rank's seconds per call, and how long all of it took."""

    durations: Durations
    wrong: int
    seconds: float


@dataclass
class Flow:
    """What calls without a pause gave: seconds of each, and elements of one more that are wrong."""

    seconds: float
    wrong: int


@dataclass
class Team:
    """The ranks of one library, called in one way. Use it with :meth:`close`.

    `module`: the rank program, where it is not that of the library.
    """

    name: TeamName
    ranks: int
    module: str = ""
    version: str = ""
    processes: list[int] = field(default_factory=list)
    _ranks: list[_Rank] = field(default_factory=list)

    def start(self, python: Path, folder: Path) -> None:
        """Start the launcher; :meth:`meet` waits for the ranks. Files go to `folder`."""
        stem = self._stem = folder / str(self.name).replace("/", "-")
        lineup = stem.with_suffix(".lineup")
        lineup.write_bytes(bytes(size(self.ranks)))
        self._meeting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._meeting.bind(str(stem.with_suffix(".socket")))
        self._meeting.listen(self.ranks)
        self._said = stem.with_suffix(".log")
        library = LIBRARIES[self.name.library]
        arguments = [self.name.way, str(stem.with_suffix(".socket")), str(lineup)]
        # What a rank prints is wanted even where it dies; ranks are the parallelism.
        environment = os.environ | {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
        with self._said.open("wb") as log:
            self._launchers = self._launched(
                python,
                ["-m", self.module or library.module, *arguments],
                environment | library.environment,
                log,
            )

    def _launched(
        self, python: Path, arguments: Sequence[str], environment: dict[str, str], log: IO[bytes]
    ) -> list[Launcher]:
        """Start the ranks, what they print goes to `log`; the end of a launcher is a failure."""
        oversubscribed = self.ranks > len(os.sched_getaffinity(0))
        command = LIBRARIES[self.name.library].launcher(python, self.ranks, oversubscribed)
        return [
            subprocess.Popen(
                [*command, *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ]

    def _kill(self, launcher: Launcher) -> None:
        """End a launcher that does not end, and what it has started."""
        os.killpg(launcher.pid, signal.SIGKILL)  # it is not reaped: the number is its own

    def meet(self) -> None:
        """Wait until all ranks have come."""
        self._meeting.settimeout(0.2)
        deadline = time.monotonic() + MEETING_S
        found: dict[int, _Rank] = {}
        while len(found) < self.ranks:
            try:
                channel = Channel(self._meeting.accept()[0])
            except TimeoutError:
                if any(launcher.poll() is not None for launcher in self._launchers):
                    raise self._failure("did not start") from None
                if time.monotonic() > deadline:
                    raise self._failure(f"did not start in {MEETING_S:.0f} s") from None
                continue
            channel.timeout(MEETING_S)
            hello = self._one(channel)[0]
            found[hello["rank"]] = _Rank(channel, os.pidfd_open(hello["process"]))
            self.processes.append(hello["process"])
            self.version = hello["version"]
            self._ranks = [found[rank] for rank in sorted(found)]

    def prepare(self, kind: str, dtype: str, nbytes: int) -> str | None:
        """Make a cell the present one; return why the library refuses, None if it does not."""
        answers = self._ask({"order": "prepare", "kind": kind, "dtype": dtype, "nbytes": nbytes})
        refused: str | None = answers[0][0].get("refused")
        return refused

    def measure(self, calls: int, warm: int) -> Result:
        """Measure a block of the present cell."""
        answers = self._ask({"order": "measure", "calls": calls, "warm": warm})
        durations = np.max([np.frombuffer(payload) for _, payload in answers], axis=0)
        wrong = sum(message["wrong"] for message, _ in answers)
        return Result(durations, wrong, max(message["seconds"] for message, _ in answers))

    def flow(self, calls: int, drain: int) -> Flow:
        """Measure `calls` calls of the present cell right behind `drain` others.

        From the moment when the last rank is done with these to that when the last is done.
        """
        answers = self._ask({"order": "flow", "calls": calls, "drain": drain})
        first, last = (max(message[moment] for message, _ in answers) for moment in _MOMENTS)
        return Flow((last - first) / calls, sum(message["wrong"] for message, _ in answers))

    def close(self) -> None:
        """Send the ranks home, and leave none behind."""
        for rank in self._ranks:
            rank.channel.close()
        self._meeting.close()
        deadline = time.monotonic() + GRACE_S
        for launcher in self._launchers:
            try:
                launcher.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                self._kill(launcher)
                launcher.wait()
        for rank in self._ranks:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(rank.process, signal.SIGKILL)
            os.close(rank.process)
        self._ranks = []

    def _ask(self, order: Message) -> list[tuple[Message, bytes]]:
        try:
            for rank in self._ranks:
                rank.channel.timeout(ANSWER_S)
                rank.channel.send(order)
            return self._answers(order)
        except OSError as error:
            raise self._failure(f"was lost: {error}") from None

    def _answers(self, order: Message) -> list[tuple[Message, bytes]]:
        """Hear all ranks in whatever order: one that dies keeps the others from answering."""
        answers: dict[int, tuple[Message, bytes]] = {}
        deadline = time.monotonic() + ANSWER_S
        with selectors.DefaultSelector() as selector:
            for number, rank in enumerate(self._ranks):
                selector.register(rank.channel, selectors.EVENT_READ, number)
            while len(answers) < len(self._ranks):
                ready = selector.select(deadline - time.monotonic())
                if not ready:
                    raise self._failure(f"gave no answer in {ANSWER_S:.0f} s to {order}")
                for key, _ in ready:
                    answers[key.data] = self._one(self._ranks[key.data].channel)
                    selector.unregister(key.fileobj)
        return [answers[number] for number in range(len(self._ranks))]

    def _one(self, channel: Channel) -> tuple[Message, bytes]:
        received = channel.receive()
        if received is None:
            raise self._failure("lost a rank")
        return received

    def _failure(self, what: str) -> TeamError:
        """Return the error with the last of what the ranks have printed."""
        said: Any = self._said.read_text(encoding="utf-8", errors="replace")[-2000:].strip()
        return TeamError(f"{self.name} {what}" + (f"; it said:\n{said}" if said else ""))
