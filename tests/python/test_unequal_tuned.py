# SPDX-License-Identifier: Apache-2.0
"""A choice that is there for blocks of one size is not taken for blocks of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.tuning.installed import install
from collectives.tuning.table import Choice
from tests.python.ranks import on_ranks, on_wired_ranks


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("p", [2, 3, 4])
def test_alltoallv_where_bruck_was_the_fastest(among: Any, p: int) -> None:
    mode = "staged" if among is on_ranks else "wire"

    def body(comm: cl.Communicator) -> None:
        chosen = Choice("alltoall", 0, "bruck", mode, 1, 16384, far=False)
        install(comm, [chosen, Choice("alltoall", 0, "bruck", mode, 1, 16384, far=True)])
        comm.alltoall(np.arange(float(p)))
        assert comm.last is not None
        assert comm.last.algorithm == "bruck"
        counts = [comm.rank + other + 1 for other in range(p)]
        sent = np.concatenate([np.full(n, 10 * comm.rank + i) for i, n in enumerate(counts)])
        got = comm.alltoallv(sent, counts)
        assert comm.last.algorithm != "bruck"
        expected = [np.full(r + comm.rank + 1, 10 * r + comm.rank) for r in range(p)]
        np.testing.assert_array_equal(got, np.concatenate(expected))

    among(p, body)
