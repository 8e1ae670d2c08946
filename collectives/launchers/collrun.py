# SPDX-License-Identifier: Apache-2.0
"""The variables of collrun, which programs and scripts may also set themselves."""

from __future__ import annotations

from collections.abc import Mapping

from collectives.environment import RANK, SIZE, place
from collectives.launchers.launch import Launch


def find(env: Mapping[str, str]) -> Launch | None:
    """Return the place that collrun gave this process. Its ranks meet without a directory."""
    if RANK not in env and SIZE not in env:
        return None
    given = place(env)
    return Launch(
        "collrun",
        given.rank,
        given.size,
        directory="none",
        how=f"{RANK}, {SIZE}",
        job=given.job or "default",
        attempt=given.attempt,
        lack="ranks of collrun are on one machine and need no key-value store",
    )
