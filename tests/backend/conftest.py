# SPDX-License-Identifier: Apache-2.0
"""Teams of ranks that tests of a module share; starting one means importing torch in each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backend.teams import PATIENCE, Team, team


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a team lose patience before the test does: it says which rank hangs."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(2 * PATIENCE + 60))


@pytest.fixture(scope="module", params=[2, 4])
def size(request: pytest.FixtureRequest) -> int:
    """Ranks of a team."""
    return int(request.param)


@pytest.fixture(scope="module")
def ours(size: int) -> Iterator[Team]:
    """Ranks of this library."""
    with team("collectives", size) as made:
        yield made


@pytest.fixture(scope="module")
def gloo(size: int) -> Iterator[Team]:
    """As many of gloo."""
    with team("gloo", size) as made:
        yield made
