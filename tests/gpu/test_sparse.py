# SPDX-License-Identifier: Apache-2.0
"""Sparse vectors, matrices of cupyx and the largest elements, on a GPU, against NumPy and SciPy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import collectives as cl
from bench.gpu.operands import WrongError
from bench.gpu.rows.merging import DENSE, SPARSE, Vectors
from bench.gpu.rows.selection import Selection
from bench.gpu.team import Team
from bench.gpu.yardsticks import Yardsticks
from tests.gpu.owners import NAMES, Owner, owner

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]

RANKS = 3


@pytest.fixture(params=NAMES)
def framework(request: pytest.FixtureRequest, yard: Yardsticks) -> Owner:
    """CuPy, then torch."""
    return owner(request.param)


@pytest.mark.parametrize("n", [1, 5, 40_000, 3_000_000])
@pytest.mark.parametrize("part", [1, 7, 1000])
def test_the_largest_elements(n: int, part: int, yard: Yardsticks) -> None:
    with Selection(yard, n, max(1, n // part)) as job:
        job.enqueue()
        job.check()


@pytest.mark.parametrize("ranks", [1, 2, 8])
@pytest.mark.parametrize("n", [100, 16_384, 1_000_003])
def test_sums_of_vectors(ranks: int, n: int, yard: Yardsticks) -> None:
    with Vectors(yard, ranks, n) as vectors, Team(ranks) as team:
        vectors.enqueue(team, SPARSE)
        vectors.check_union(team)
        vectors.poison()
        with pytest.raises(WrongError):
            vectors.check()
        vectors.enqueue(team, DENSE)
        vectors.check()


def gradient(rank: int, step: int, n: int, dtype: str) -> Any:
    random = np.random.default_rng(100 * step + rank)
    return random.standard_normal(n).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_top_k_with_feedback_is_that_of_the_host(dtype: str, framework: Owner) -> None:
    def work(comm: cl.Communicator) -> None:
        there, here = cl.TopK(0.01), cl.TopK(0.01)
        with framework.on(framework.stream()):
            for step in range(3):
                x = gradient(comm.rank, step, 50_000, dtype)
                on_gpu = framework.array(x)
                assert comm.allreduce(on_gpu, compress=there, op="avg") is on_gpu
                comm.allreduce(x, compress=here, op="avg")
                found = framework.host(on_gpu)
                error = 1e-2 if dtype == "float16" else 1e-6
                assert np.allclose(found, x, rtol=error, atol=0)
                assert (found != 0).sum() == (x != 0).sum()

    with Team(RANKS) as team:
        team.run(work)


def test_vectors_of_a_framework(framework: Owner) -> None:
    n = 50_000

    def places(rank: int) -> Any:
        return np.arange(rank, n, 7 + rank).astype("i8")

    def work(comm: cl.Communicator) -> None:
        with framework.on(framework.stream()):
            mine = places(comm.rank)
            values = (mine % 5 - 2).astype("f4")
            x = cl.Sparse(framework.array(mine), framework.array(values), n)
            expected: Any = sum(
                np.bincount(at, weights=at % 5 - 2.0, minlength=n)
                for at in map(places, range(RANKS))
            )
            total = comm.allreduce(x)
            indices = framework.host(total.indices)
            assert indices.tolist() == np.flatnonzero(expected).tolist()
            assert (framework.host(total.values) == expected[indices]).all()
            dense = comm.allreduce(x, output="dense", op="avg")
            assert np.allclose(framework.host(dense), expected / RANKS, rtol=1e-6)

    with Team(RANKS) as team:
        team.run(work)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_matrices_of_cupyx(form: str, yard: Yardsticks) -> None:
    cupy = owner("cupy").module
    cupyx: Any = importlib.import_module("cupyx.scipy.sparse")
    scipy: Any = pytest.importorskip("scipy.sparse")
    hosts = [
        scipy.random(300, 400, 0.1, form, "f4", np.random.default_rng(rank))
        for rank in range(RANKS)
    ]
    expected = sum(host.toarray() for host in hosts)

    def work(comm: cl.Communicator) -> None:
        with cupy.cuda.Stream(non_blocking=True):
            mine = getattr(cupyx, f"{form}_matrix")(hosts[comm.rank])
            total = comm.allreduce(mine)
            assert cupyx.issparse(total)
            assert total.format == form
            assert np.allclose(total.toarray().get(), expected)
            dense = comm.allreduce(mine, output="dense")
            assert np.allclose(dense.get(), expected)

    with Team(RANKS) as team:
        team.run(work)
