# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the benchmarks: teams of ranks, and one timed and checked call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.team import Team
from collectives.exact import Workload
from collectives.measure import Contender, bandwidths

# Up to this many bytes a case takes the first number of rounds, above it the second.
SMALL, ROUNDS = 1 << 16, (400, 40)

Timed = Callable[..., None]


@pytest.fixture(scope="module", params=[2, 4], ids=lambda size: f"{size} ranks")
def team(request: pytest.FixtureRequest) -> Iterator[Team]:
    """Return ranks as processes: two, one per core, and four, which share two cores."""
    ranks = Team(request.param)
    yield ranks
    ranks.close()


@pytest.fixture
def timed(team: Team, benchmark: Any) -> Timed:
    """Return a function that times a collective at rank 0, one call per round, results checked."""

    def run(kind: str, nbytes: int, algorithm: str | None = None, root: int = 0) -> None:
        load = Workload(kind, nbytes, root=root)
        call = team.begin(load, Contender(algorithm))
        benchmark.pedantic(
            call,
            setup=team.before,
            teardown=team.after,
            rounds=ROUNDS[nbytes > SMALL],
            warmup_rounds=3,
        )
        assert team.wrong == 0
        size = load.size(team.size) if kind != "barrier" else 0
        algbw, busbw = bandwidths(kind, size, benchmark.stats.stats.median, team.size)
        benchmark.group = f"{kind} {size} bytes"
        benchmark.extra_info.update(
            ranks=team.size,
            bytes=size,
            algorithm=algorithm or "auto",
            algbw=round(algbw, 4) if size else None,
            busbw=round(busbw, 4) if size else None,
        )

    return run
