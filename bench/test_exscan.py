# SPDX-License-Identifier: Apache-2.0
"""exscan of float32, from 8 bytes to 1 MiB."""

from __future__ import annotations

import pytest

from bench.conftest import Timed


@pytest.mark.parametrize("nbytes", [8, 1 << 12, 1 << 16, 1 << 20])
def test_exscan(timed: Timed, nbytes: int) -> None:
    """Time rank 0, which gets nothing and sends its input on."""
    timed("exscan", nbytes)
