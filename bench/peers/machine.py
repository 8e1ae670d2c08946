# SPDX-License-Identifier: Apache-2.0
"""The machine's limits, asked for between blocks, and the placement that they tell."""

from __future__ import annotations

import subprocess
from types import TracebackType

from bench.limits.program import ASK, ProgramError, build
from collectives.measure import placement

STREAMS = ("copy", "streaming", "peer")
LEAST_STREAM = 4096  # bytes; below, a message is a matter of lines


class Machine:
    """The native program that knows the limits, kept running. Use it with ``with``."""

    def __init__(self, preset: str = "release") -> None:
        self._process = subprocess.Popen(
            [build(preset, ASK)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the program."""
        self._process.communicate()

    def line(self) -> float:
        """Return the one-way latency of a cache line between the two cores, in ns."""
        return self._ask("line")

    def limit(self, name: str, nbytes: int) -> float:
        """Return one of ``limits_of(nbytes)``: GB/s of each core, or ns of sched_yield."""
        return self._ask(f"{name} {nbytes}" if name in STREAMS else name)

    def _ask(self, question: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(question, file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise ProgramError(self._process.communicate()[1].strip() or f"{ASK} has ended")
        return float(answer)


def limits_of(nbytes: int) -> tuple[str, ...]:
    """Return the names of what bounds messages of a size, beside the line."""
    return STREAMS if nbytes >= LEAST_STREAM else ("yield",)


def where(*lines: float) -> str:
    """Name the placement that probes saw: near, far, or mixed."""
    return placement(lines) or ""
