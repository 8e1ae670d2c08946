# SPDX-License-Identifier: Apache-2.0
"""All ranks choose alike, whatever their tables say.

In 3,000 random calls, and in a hundred thousand in `make test-extras`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.processes.jobs import found
from tests.shares import few, some_or_all

pytestmark = pytest.mark.processes

CALLS = {2: 40_000, 3: 40_000, 4: 20_000}  # 100,000 in all: the goal of the choice


@some_or_all(20)
@few("p", [*CALLS], [2, 4])
def test_ranks_never_disagree(p: int, share: int, tmp_path: Path) -> None:
    seed, calls = random.randrange(1 << 30), CALLS[p] // share
    for told in found(p, "agreement.random_calls", tmp_path, calls, seed, timeout=240):
        assert told["calls"] == calls
        assert told["wrong"] == 0, f"seed {seed}"
        assert told["tables"] >= 10 // share
