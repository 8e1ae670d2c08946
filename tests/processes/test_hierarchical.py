# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes: hierarchical algorithms, as if the machine were several hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.jobs import found

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("levels", ["[[0, 1], [2, 3]]", "[[0, 1, 2], [3]]"])
def test_every_hierarchical_collective(levels: str, tmp_path: Path) -> None:
    for rank, wrong in enumerate(found(4, "hierarchical.everything", tmp_path, levels)):
        assert wrong == [], f"rank {rank}"
