# SPDX-License-Identifier: Apache-2.0
"""gather of float32 to rank 0, which is timed."""

from __future__ import annotations

import pytest

from bench.conftest import Timed


@pytest.mark.parametrize("nbytes", [8, 1 << 12, 1 << 16, 1 << 20])
def test_gather(timed: Timed, nbytes: int) -> None:
    """Time the root."""
    timed("gather", nbytes, root=0)
