# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes: reproducible results are bitwise those of their definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.jobs import found
from tests.shares import few

pytestmark = pytest.mark.processes


@few("p", [1, 2, 3, 4, 5, 8], [3])
@pytest.mark.parametrize(
    "what", ["some_bits", pytest.param("bits", marks=pytest.mark.all_cases), "exactly"]
)
def test_reproducible_results(p: int, what: str, tmp_path: Path) -> None:
    assert found(p, f"reproducible.{what}", tmp_path, timeout=120) == [[]] * p
