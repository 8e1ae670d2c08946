# SPDX-License-Identifier: Apache-2.0
"""scatter of float32 from rank 1: rank 0, which is timed, receives its part."""

from __future__ import annotations

import pytest

from bench.conftest import Timed


@pytest.mark.parametrize("nbytes", [8, 1 << 12, 1 << 16, 1 << 20])
def test_scatter(timed: Timed, nbytes: int) -> None:
    """Time the receiving end."""
    timed("scatter", nbytes, root=1)
