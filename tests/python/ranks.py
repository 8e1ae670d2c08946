# SPDX-License-Identifier: Apache-2.0
"""A group of threads for the length of one test."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import collectives as cl
from tests.python.conftest import run_threads


def on_ranks(p: int, work: Callable[[cl.Communicator], Any]) -> list[Any]:
    """Run ``work`` on every rank of a new group; return what they return."""
    with ExitStack() as stack:
        comms = cl.local(p, timeout=20)
        for comm in comms:
            stack.callback(comm.close)
        return run_threads(comms, work)
