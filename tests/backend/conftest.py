# SPDX-License-Identifier: Apache-2.0
"""Teams of ranks that tests of a module share; starting one means importing torch in each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backend.teams import Team, team


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
