# SPDX-License-Identifier: Apache-2.0
"""Hooks, collectives for autograd, buckets of gradients."""

from __future__ import annotations

import pytest

from tests.backend.teams import Team

pytestmark = pytest.mark.extras

PROGRAMS = (
    "fp8",
    "qsgd",
    "reproducible",
    "adasum",
    "topk",
    "differentiable",
    "buckets",
    "narrow",
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_extension_gives_what_it_says(ours: Team, program: str) -> None:
    ours.run(f"extensions.{program}")
