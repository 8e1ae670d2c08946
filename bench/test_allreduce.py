# SPDX-License-Identifier: Apache-2.0
"""allreduce of float32: the library's choice from 8 bytes to 1 MiB, and each algorithm."""

from __future__ import annotations

import pytest

import collectives as cl
from bench.conftest import Timed


@pytest.mark.parametrize("nbytes", [8, 1 << 12, 1 << 16, 1 << 20])
def test_allreduce(timed: Timed, nbytes: int) -> None:
    """Time the library's own choice."""
    timed("allreduce", nbytes)


@pytest.mark.parametrize("nbytes", [8, 1 << 18])
@pytest.mark.parametrize("algorithm", [a.name for a in cl.algorithms("allreduce")])
def test_allreduce_algorithm(timed: Timed, algorithm: str, nbytes: int) -> None:
    """Time each algorithm of the table."""
    timed("allreduce", nbytes, algorithm)
