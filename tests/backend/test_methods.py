# SPDX-License-Identifier: Apache-2.0
"""Every method of a process group, from Python, and what C++ asks for by functional collectives."""

from __future__ import annotations

import pytest

from tests.backend.teams import Team

pytestmark = pytest.mark.extras

PROGRAMS = (
    "allreduce",
    "allreduce_of_every_dtype",
    "allreduce_of_views",
    "coalesced",
    "broadcast_and_reduce",
    "gathers",
    "gathers_into_one",
    "scatters",
    "exchanges",
    "messages",
    "objects",
    "groups",
    "works",
    "sparse",
    "profiled",
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_method_gives_what_torch_says(ours: Team, program: str) -> None:
    ours.run(f"methods.{program}")
