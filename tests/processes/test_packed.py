# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes: trees packed into the links between some GPUs of a DGX-1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.jobs import found
from tests.shares import few

pytestmark = pytest.mark.processes


@few("p", [3, 5], [5])
def test_every_packed_collective(p: int, tmp_path: Path) -> None:
    for rank, wrong in enumerate(found(p, "packed.everything", tmp_path)):
        assert wrong == [], f"rank {rank}"
