# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes: every collective in every way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.jobs import found
from tests.shares import some_or_all

pytestmark = pytest.mark.processes


@some_or_all(100)
@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8])
def test_every_collective_in_every_way(p: int, share: int, tmp_path: Path) -> None:
    for rank, checks in enumerate(found(p, "results.everything", tmp_path, share)):
        for check, wrong in checks.items():
            assert wrong == [], f"rank {rank}, {check}"
