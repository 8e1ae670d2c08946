# SPDX-License-Identifier: Apache-2.0
"""Ranks on several hosts: programs for all of them, and what each has found."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.hosts import Hosts
from tests.hosts.host import Host
from tests.hosts.namespaces import started

ROOT = Path(__file__).parents[2]
PATIENCE = 40.0  # seconds, for what must come


class Job:
    """Ranks that wait for work: ``per`` on each host, in the order of the hosts."""

    def __init__(
        self,
        hosts: list[Host],
        folder: Path,
        per: int = 1,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.n = folder, len(hosts) * per
        self._attempt = 0
        meeting = folder / "meeting"
        meeting.mkdir(mode=0o700, parents=True)
        kept = {name: v for name, v in os.environ.items() if not name.startswith("COLLECTIVES")}
        env = {
            **kept,
            **(settings or {}),
            "WORLD_SIZE": str(self.n),
            "COLLECTIVES_RENDEZVOUS": str(meeting),
        }
        command = [sys.executable, "-m", "tests.hosts.rank", str(folder)]
        self.errors = (folder / "errors").open("w", encoding="utf-8")
        self.ranks = [
            hosts[rank // per].start(
                command,
                env={**env, "RANK": str(rank)},
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stderr=self.errors,
            )
            for rank in range(self.n)
        ]

    def begin(self, program: str, *arguments: Any) -> Run:
        """Start ``tests.hosts.MODULE.FUNCTION(comm, *arguments)`` on all ranks."""
        self._attempt += 1
        run = Run(self, self._attempt)
        for rank in self.ranks:
            assert rank.stdin is not None
            rank.stdin.write(f"{self._attempt} {program} {json.dumps(arguments)}\n")
            rank.stdin.flush()
        return run

    def found(self, program: str, *arguments: Any) -> list[Any]:
        """Run a program to its end on all ranks; return what they found."""
        with self.running(program, *arguments) as run:
            return run.results()

    @contextmanager
    def running(self, program: str, *arguments: Any) -> Iterator[Run]:
        """Give a run; behind it no process of it is left."""
        run = self.begin(program, *arguments)
        try:
            yield run
        finally:
            run.end()

    def close(self) -> None:
        """End all ranks."""
        for rank in self.ranks:
            assert rank.stdin is not None
            with contextlib.suppress(OSError):
                rank.stdin.close()
            rank.wait(timeout=PATIENCE)
        self.errors.close()


class Run:
    """One program on all ranks of a job."""

    def __init__(self, job: Job, attempt: int) -> None:
        self.job, self.attempt = job, attempt

    def path(self, rank: int, kind: str) -> Path:
        """Return where a rank leaves something."""
        return self.job.folder / f"{self.attempt}.{rank}.{kind}"

    def read(self, rank: int, kind: str = "json", patience: float = PATIENCE) -> Any:
        """Wait for what a rank leaves, and return it."""
        path, end = self.path(rank, kind), time.monotonic() + patience
        while not path.exists():
            ended = self.path(rank, "end")
            if kind == "json" and ended.exists() and not path.exists():
                raise AssertionError(f"rank {rank} ended without a result: {self.complaints()}")
            assert time.monotonic() < end, f"rank {rank}: no {kind}: {self.complaints()}"
            time.sleep(0.002)
        return json.loads(path.read_text())

    def complaints(self) -> str:
        """Return what ranks have printed."""
        return (self.job.folder / "errors").read_text(encoding="utf-8")[-2000:]

    def results(self, *but: int) -> list[Any]:
        """Return what all ranks, but some, have found."""
        return [self.read(rank) for rank in range(self.job.n) if rank not in but]

    def pid(self, rank: int) -> int:
        """Return the process of a rank."""
        return int(self.read(rank, "pid"))

    def signal(self, rank: int, number: signal.Signals) -> float:
        """Send a signal to a rank; return when."""
        os.kill(self.pid(rank), number)
        return time.monotonic()

    def reached(self, name: str) -> None:
        """Wait until all ranks have told that they are somewhere."""
        for rank in range(self.job.n):
            self.read(rank, name)

    def say(self, name: str) -> None:
        """Tell all ranks of this run something."""
        (self.job.folder / f"{self.attempt}.{name}").write_text("")

    def end(self, patience: float = 3.0) -> None:
        """Wait for all processes of the run, and kill those that do not end."""
        late = []
        for rank in range(self.job.n):
            pid = self.pid(rank)
            until = time.monotonic() + patience
            while not self.path(rank, "end").exists():
                if time.monotonic() > until and started(pid) is not None:
                    late.append(rank)
                    os.kill(pid, signal.SIGKILL)
                    self.read(rank, "end")
                time.sleep(0.002)
        assert late == [], f"ranks {late} did not end: {self.complaints()}"


@contextmanager
def jobs(
    n: int, folder: Path, per: int = 1, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[Hosts, Job]]:
    """Give hosts with ranks on them, which have these settings in their environment."""
    with Hosts(n) as hosts:
        job = Job(list(hosts), folder, per, settings)
        try:
            yield hosts, job
        finally:
            job.close()
