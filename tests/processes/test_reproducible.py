# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes: reproducible results are bitwise those of their definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.jobs import found

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("what", ["bits", "exactly"])
def test_reproducible_results(p: int, what: str, tmp_path: Path) -> None:
    assert found(p, f"reproducible.{what}", tmp_path, timeout=120) == [[]] * p
