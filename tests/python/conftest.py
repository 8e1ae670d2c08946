# SPDX-License-Identifier: Apache-2.0
"""Ranks as threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import collectives as cl
from collectives.names import OWN

Work = Callable[[cl.Communicator], Any]


def run_threads(comms: Sequence[cl.Communicator], work: Work) -> list[Any]:
    """Run ``work`` on every rank at once, each in a thread of its own; return what they return."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # every call waits for the interpreter lock once per rank
    try:
        with ThreadPoolExecutor(len(comms)) as pool:
            return [future.result(100) for future in [pool.submit(work, comm) for comm in comms]]
    finally:
        sys.setswitchinterval(interval)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Tests enumerate all algorithms: what a test adds is there for it only."""
    yield
    OWN.clear()


@pytest.fixture(scope="session")
def threads() -> Callable[[Sequence[cl.Communicator], Work], list[Any]]:
    """Give :func:`run_threads` to a test."""
    return run_threads
