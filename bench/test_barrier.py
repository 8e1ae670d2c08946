# SPDX-License-Identifier: Apache-2.0
"""barrier, lined up by another barrier before it."""

from __future__ import annotations

from bench.conftest import Timed


def test_barrier(timed: Timed) -> None:
    """Time the wait for everyone."""
    timed("barrier", 0)
