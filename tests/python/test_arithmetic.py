# SPDX-License-Identifier: Apache-2.0
"""What docs/arithmetic.md says: where sums overflow, and where bfloat16 is rounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl

P = 4
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SUMMING = [a for a in cl.algorithms() if a.kind in ("allreduce", "reduce_scatter", "reduce")]
ONCE = {"direct", "direct_one_shot", "direct_two_shot"}


@pytest.fixture(scope="module")
def comms() -> Iterator[list[cl.Communicator]]:
    made = cl.local(P, timeout=20)
    yield made
    for comm in made:
        comm.close()


def ident(algorithm: cl.Algorithm) -> str:
    return f"{algorithm.kind} {algorithm.name}"


def call(comm: cl.Communicator, kind: str, x: Any, **options: Any) -> Any:
    """Reduce and return what this rank gets, as float64."""
    got = getattr(comm, kind)(x, **options)
    return np.zeros(0) if got is None else np.asarray(got).astype(np.float64)


@pytest.mark.parametrize("algorithm", SUMMING, ids=ident)
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64), BFLOAT16])
def test_averages_overflow_where_their_sums_do(
    comms: list[cl.Communicator], threads: Any, algorithm: cl.Algorithm, dtype: Any
) -> None:
    widest = np.finfo(np.float64 if dtype.itemsize == 8 else np.float32)
    large = 0.4 * float(widest.max)  # the sum of three is too large

    def average(comm: cl.Communicator) -> Any:
        x = np.full(8, large, dtype)
        return call(comm, algorithm.kind, x, op="avg", algorithm=algorithm.name)

    for got in threads(comms, average):
        assert np.isposinf(got).all()


def rounded_once(kind: str, results: list[Any], operands: Any) -> bool:
    """Whether sums of bfloat16 are as near to the exact ones as a single rounding leaves them."""
    exact = operands.astype(np.float64).sum(axis=0)
    got = np.concatenate(results) if kind == "reduce_scatter" else results[0]
    # Half of the last of eight binary digits, and a little for the float32 that it is made in.
    return bool((np.abs(got - exact) <= np.abs(exact) * 2.0**-8 * 1.001 + 1e-5).all())


def noise(p: int, count: int) -> Any:
    return np.random.default_rng(3).standard_normal((p, count)).astype(BFLOAT16)


@pytest.mark.parametrize("algorithm", SUMMING, ids=ident)
def test_bfloat16_is_rounded_once_or_on_every_hop(
    comms: list[cl.Communicator], threads: Any, algorithm: cl.Algorithm
) -> None:
    operands = noise(P, 4096)

    def total(comm: cl.Communicator) -> Any:
        x = operands[comm.rank].copy()
        return call(comm, algorithm.kind, x, algorithm=algorithm.name)

    once = rounded_once(algorithm.kind, threads(comms, total), operands)
    assert once == (algorithm.name in ONCE)


@pytest.mark.parametrize(("p", "once"), [(P, True), (16, True), (17, False)])
def test_few_ranks_round_once_unless_told_otherwise(p: int, once: bool, threads: Any) -> None:
    comms = cl.local(p, timeout=30)
    for kind in ("allreduce", "reduce_scatter"):
        for count in (32 * p, 2048 * p):
            operands = noise(p, count)

            def total(comm: cl.Communicator, kind: str = kind, x: Any = operands) -> Any:
                return call(comm, kind, x[comm.rank].copy())

            assert rounded_once(kind, threads(comms, total), operands) == once, (kind, count)
    for comm in comms:
        comm.close()
