# SPDX-License-Identifier: Apache-2.0
"""The short way of an all_reduce is for the plain calls alone, and none else is wrong for it."""

from __future__ import annotations

import pytest

from tests.backend.teams import Team

pytestmark = pytest.mark.extras

# Of each call that may take it, whether it does. Where a time-out is set nobody asks.
WAYS = {
    "plain": [True],
    "async": [False],
    "after async": [True],
    "with a time-out": [False],
    "under a profiler": [False],
    "behind another": [False],
    "of a parameter": [False],
    "of a kind": [False],
    "after set_timeout": [],
}


def test_only_plain_calls_take_the_short_way(ours: Team) -> None:
    for found in ours.run("shortly.ways"):
        found["behind another"].pop()  # by then the other call may be done
        assert found == WAYS
