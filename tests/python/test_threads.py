# SPDX-License-Identifier: Apache-2.0
"""Ranks as threads of one process: every collective in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests import sweep
from tests.shares import some_or_all

SIZES = (1, 2, 3, 4, 5, 8)
MODES = (None, "staged", "inline", "pull", "push")


@pytest.fixture(params=SIZES, ids=lambda p: f"p={p}")
def comms(request: pytest.FixtureRequest) -> Iterator[list[cl.Communicator]]:
    made = cl.local(request.param, timeout=30)
    yield made
    for comm in made:
        comm.close()


@pytest.mark.parametrize("check", [sweep.dtypes, sweep.places, sweep.parts, sweep.shapes])
def test_results(comms: list[cl.Communicator], threads: Any, check: Callable[..., Any]) -> None:
    assert threads(comms, check) == [[]] * len(comms)


@some_or_all(40)
def test_every_algorithm_in_every_mode(
    comms: list[cl.Communicator], threads: Any, share: int
) -> None:
    found = threads(comms, lambda comm: sweep.algorithms(comm, MODES, share))
    assert found == [[]] * len(comms)


def test_threads_get_the_same_bits(threads: Any) -> None:
    comms = cl.local(4, timeout=30)
    noise = np.random.default_rng(1).standard_normal((4, 5000)).astype(np.float32)
    for algorithm in cl.algorithms("allreduce"):

        def reduce(comm: cl.Communicator, name: str = algorithm.name) -> bytes:
            return bytes(comm.allreduce(noise[comm.rank].copy(), algorithm=name))

        assert len(set(threads(comms, reduce))) == 1, algorithm.name
