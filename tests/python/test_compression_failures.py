# SPDX-License-Identifier: Apache-2.0
"""Compressed calls that fail: what is kept stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

MADE: dict[str, dict[str, Any]] = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "threshold": {"reuse": 3},
    "all": {"momentum": 0.5, "reuse": 3, "of_sum": True},
}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


@pytest.mark.parametrize("calls_before", [0, 2])
@pytest.mark.parametrize("name", MADE)
def test_a_call_that_fails_changes_nothing(name: str, calls_before: int) -> None:
    """All are told of the other operation, and try again elsewhere: as if nothing had happened."""
    rng = np.random.default_rng(4)
    parts = rng.standard_normal((calls_before + 1, 2, 400))

    def body(comm: cl.Communicator) -> None:
        topk, other = (cl.TopK(0.05, **MADE[name]) for _ in range(2))
        for step in range(calls_before):
            for each in (topk, other):
                comm.allreduce(parts[step, comm.rank].copy(), compress=each)
        spare = comm.dup()  # ranks that made different calls make no more on a communicator
        before, x = topk.state(), parts[-1, comm.rank].copy()
        with pytest.raises(cl.MismatchError):
            comm.allreduce(x, compress=topk, op="avg" if comm.rank else "sum")
        same(topk.state(), before)
        np.testing.assert_array_equal(x, parts[-1, comm.rank])
        result = spare.allreduce(x, compress=topk)
        expected = spare.allreduce(parts[-1, comm.rank].copy(), compress=other)
        np.testing.assert_array_equal(result, expected)
        same(topk.state(), other.state())

    on_ranks(2, body)
