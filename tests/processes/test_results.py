# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes: every collective in every way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.jobs import found

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 8])
def test_every_collective_in_every_way(p: int, tmp_path: Path) -> None:
    for rank, checks in enumerate(found(p, "results.everything", tmp_path)):
        for check, wrong in checks.items():
            assert wrong == [], f"rank {rank}, {check}"
