# SPDX-License-Identifier: Apache-2.0
"""What all rows of a run share: the GPU, the time that is left, how long and often to measure."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from bench.gpu.arrays import GpuMemory
from bench.gpu.rounds import Check, Enqueue, Times, measure
from bench.gpu.yardsticks import Yardsticks

KIB, MIB = 1 << 10, 1 << 20
COPY = "copy"  # the way that bandwidth is measured by, in every round


@dataclass(frozen=True)
class Extent:
    """How much is measured."""

    ranks: tuple[int, ...] = (8, 4, 2)
    # Those with goals first: where time runs out, what is left out is in between.
    sizes: tuple[int, ...] = (
        256 * MIB, 64 * MIB, 16 * KIB, 4 * KIB, 512 * MIB, 16 * MIB, 4 * MIB, MIB, 256 * KIB,
        64 * KIB,
    )  # fmt: skip
    rounds: int = 11
    least_s: float = 0.01  # of one way in one round
    copy_bytes: int = 1024 * MIB
    turns: int = 500  # of a flag between two blocks
    most_calls: int = 1000  # in a graph
    elements: int = 100_000_000  # of a vector that is sparse, or to be


FULL = Extent()
# To see that all of it works, on an emulated GPU, too.
TINY = Extent((4, 2), (8 * KIB,), 2, 1e-5, 64 * KIB, 4, 2, 40_000)


@dataclass
class Bench:
    """One run."""

    yard: Yardsticks
    extent: Extent
    deadline: float  # of time.monotonic()
    left_out: list[str] = field(default_factory=list)
    _copied: tuple[GpuMemory, GpuMemory] | None = None

    def over(self, what: str) -> bool:
        """Whether the time is over; then what is not measured is told."""
        if time.monotonic() < self.deadline:
            return False
        self.leave_out(f"{what}: no time was left")
        return True

    def leave_out(self, sentence: str) -> None:
        """Say once what is not measured, and why."""
        if sentence not in self.left_out:
            self.left_out.append(sentence)

    def measure(
        self, ways: dict[str, Enqueue], calls: int = 1, check: Check | None = None
    ) -> Times:
        """Measure these ways by turns, ``calls`` calls in a graph."""
        extent = self.extent
        calls = min(calls, extent.most_calls)
        return measure(self.yard, ways, calls, extent.rounds, extent.least_s, check)

    def copy(self) -> None:
        """Enqueue the copy that tells the bandwidth."""
        if self._copied is None:
            source, target = (GpuMemory(self.yard, self.extent.copy_bytes) for _ in range(2))
            self.yard.fill(source.address, self.extent.copy_bytes // 4, False, 1)
            self._copied = (source, target)
        source, target = self._copied
        self.yard.copy(target.address, source.address, self.extent.copy_bytes)

    def bandwidth(self, times: Times) -> list[float]:
        """Return bytes read and written in a second, of each round."""
        return [2 * self.extent.copy_bytes / seconds for seconds in times[COPY]]
