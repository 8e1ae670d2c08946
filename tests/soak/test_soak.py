# SPDX-License-Identifier: Apache-2.0
"""Mixed collectives against NumPy: every dtype, operation, algorithm, group, async call.

600 of them, and 20,000 in `make test-extras`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from tests.shares import some_or_all
from tests.soak.__main__ import run

# A seed of its own for every run of the tests; SOAK_SEED replays one.
SEED = int(os.environ.get("SOAK_SEED", random.randrange(2**31)))
RUNS = [
    ("threads", 2, 4000),
    ("threads", 3, 3000),
    ("threads", 5, 2500),
    ("threads", 8, 1500),
    ("processes", 2, 4000),
    ("processes", 4, 3000),
    ("processes", 7, 2000),
]
SHARE = 32  # a plain run makes one of so many calls


@some_or_all(SHARE)
@pytest.mark.parametrize(("how", "ranks", "number"), RUNS)
@pytest.mark.timeout(120)
def test_soak(
    how: str, ranks: int, number: int, share: int, record_property: Callable[[str, object], None]
) -> None:
    seed, number = SEED + ranks, number // share
    line = f"python -m tests.soak --how {how} --ranks {ranks} --seed {seed} --calls {number}"
    record_property("replay", line)  # conftest.py prints it at the end
    wrong = run(how, ranks, seed, number)
    assert wrong is None, f"{wrong}\nreplay: {line}"


def test_enough_of_them() -> None:
    assert sum(number for _, _, number in RUNS) >= 20_000
    assert sum(number // SHARE for _, _, number in RUNS) > 600
