# SPDX-License-Identifier: Apache-2.0
"""All ranks choose alike, in a hundred thousand random calls, whatever their tables say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.processes.jobs import found

pytestmark = pytest.mark.processes

CALLS = {2: 40_000, 3: 40_000, 4: 20_000}  # 100,000 in all: the goal of the choice


@pytest.mark.parametrize("p", CALLS)
def test_ranks_never_disagree(p: int, tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    for told in found(p, "agreement.random_calls", tmp_path, CALLS[p], seed, timeout=240):
        assert told["calls"] == CALLS[p]
        assert told["wrong"] == 0, f"seed {seed}"
        assert told["tables"] > 10
