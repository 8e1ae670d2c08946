# SPDX-License-Identifier: Apache-2.0
"""A GPU for tests, as `python -m bench.gpu` finds it; without one they are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import collectives as cl
from bench.gpu import libraries
from bench.gpu.arrays import GpuMemory
from bench.gpu.yardsticks import GpuError, Yardsticks

ROOM = 2 << 20  # bytes of each array of a rank
MOST_RANKS = 8


@pytest.fixture(scope="session")
def yard() -> Iterator[Yardsticks]:
    """One GPU."""
    found = cl.devices()
    if not found:
        pytest.skip(f"no GPU: {found.why}")
    try:
        opened = Yardsticks(libraries.yardsticks(), found[0].number)
    except (libraries.LibraryError, GpuError) as error:
        pytest.fail(f"there is a GPU, and no library of yardsticks: {error}")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def room(yard: Yardsticks) -> list[tuple[GpuMemory, GpuMemory]]:
    """Memory for an array in and one out of each rank."""
    return [(GpuMemory(yard, ROOM), GpuMemory(yard, ROOM)) for _ in range(MOST_RANKS)]
