# SPDX-License-Identifier: Apache-2.0
"""The timing core: percentiles, bandwidths, agreement of the ranks, and what it catches."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collectives as cl
from collectives.exact import KINDS, ROOTED, Workload
from collectives.measure import (
    LEAST_CALLS,
    Contender,
    Effort,
    Row,
    bandwidths,
    measure,
    percentile,
    placement,
)

QUICK = Effort(seconds=0.02, blocks=2)
POSITIVE = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=50)


def on_ranks(p: int, load: Workload, contenders: list[Contender], **more: Any) -> list[list[Row]]:
    """Measure on p ranks as threads; return every rank's rows."""
    more.setdefault("effort", QUICK)
    comms = cl.local(p, timeout=20)
    with ThreadPoolExecutor(p) as pool:
        rows = list(pool.map(lambda comm: measure(comm, load, contenders, **more), comms))
    for comm in comms:
        comm.close()
    return rows


@given(POSITIVE, st.floats(0, 1))
def test_a_percentile_is_a_sample_that_enough_others_do_not_exceed(
    values: list[float], share: float
) -> None:
    found = percentile(np.array(values), share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < max(share * len(values), 1)


def test_percentiles_of_few_samples() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert [percentile(values, q) for q in (0, 0.5, 0.99)] == [1, 2, 3]
    assert math.isnan(percentile(np.empty(0), 0.5))


@pytest.mark.parametrize(
    ("kind", "share"),
    [
        ("allreduce", 1.5),
        ("reduce_scatter", 0.75),
        ("allgather", 0.75),
        ("broadcast", 1),
        ("reduce", 1),
        ("gather", 0.75),
        ("scatter", 0.75),
        ("alltoall", 0.75),
        ("scan", 1),
        ("exscan", 1),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(kind: str, share: float) -> None:
    assert bandwidths(kind, 2_000_000, 1e-3, 4) == pytest.approx((2.0, 2.0 * share))


def test_nothing_to_carry_has_no_bandwidth() -> None:
    assert all(math.isnan(value) for value in bandwidths("barrier", 0, 1e-3, 4))
    assert bandwidths("allreduce", 8, 1e-3, 1)[1] == 0


def test_placement() -> None:
    assert placement([]) is None
    assert placement([50, 60]) == "near"
    assert placement([250, 240]) == "far"
    assert placement([50, 240]) == "mixed"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_every_collective_is_measured_and_right(kind: str, p: int) -> None:
    rows = on_ranks(p, Workload(kind, 1000, root=p - 1), [Contender()])
    assert all(row == rows[0] for row in rows[1:]) or kind == "barrier"  # NaN is not NaN
    row = rows[0][0]
    assert (row.kind, row.ranks, row.wrong, row.refused) == (kind, p, 0, None)
    assert row.root == (p - 1 if kind in ROOTED else -1)
    assert row.calls >= LEAST_CALLS
    assert 0 < row.least <= row.p50 <= row.p99


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "barrier"])
def test_every_algorithm_is_measured_and_right(kind: str) -> None:
    names = [a.name for a in cl.algorithms(kind) if a.fits(3)]
    load, effort = Workload(kind, 5000, "float64", root=1), Effort(iterations=3, blocks=1)
    rows = on_ranks(3, load, [Contender(name) for name in names], effort=effort)[0]
    found = [(row.algorithm, row.wrong, row.refused) for row in rows]
    assert found == [(name, 0, None) for name in names]


def test_contenders_get_the_calls_that_were_asked_for() -> None:
    effort = Effort(iterations=7, blocks=3)
    rows = on_ranks(2, Workload("allreduce", 64), [Contender("ring"), Contender()], effort=effort)
    assert [(row.algorithm, row.calls) for row in rows[1]] == [("ring", 7), ("auto", 7)]


def test_fewer_calls_than_blocks() -> None:
    effort = Effort(iterations=1, blocks=4)
    assert on_ranks(2, Workload("allreduce", 64), [Contender()], effort=effort)[0][0].calls == 1


def test_a_refusal_is_a_row_and_the_others_go_on() -> None:
    contenders = [Contender("no such"), Contender("ring")]
    refused, ring = on_ranks(2, Workload("allreduce", 64), contenders)[0]
    assert refused.refused is not None
    assert "no such" in refused.refused
    assert (refused.calls, math.isnan(refused.p50)) == (0, True)
    assert ring.wrong == 0


def test_progress_is_told_block_by_block() -> None:
    ticks: list[int] = []
    effort = Effort(iterations=2, blocks=3)
    comm = cl.local(1)[0]
    measure(
        comm,
        Workload("reduce", 8),
        [Contender(), Contender()],
        effort,
        tick=lambda: ticks.append(1),
    )
    comm.close()
    assert len(ticks) == 6


def test_the_probe_tags_rows() -> None:
    latencies = iter([50.0, 60.0, 300.0, 310.0])
    effort = Effort(iterations=2, blocks=1)
    comm = cl.local(1)[0]
    with comm:
        load = Workload("allreduce", 8)
        rows = measure(
            comm, load, [Contender(), Contender()], effort, probe=lambda: next(latencies)
        )
    assert [row.placement for row in rows] == ["near", "far"]


class Liar:
    """A communicator of one rank whose allreduce of data gets an element wrong."""

    rank, size = 0, 1

    def allreduce(self, x: Any, **options: Any) -> Any:
        if x.dtype == np.float32:
            x[len(x) // 2] += 1
        return x

    def broadcast(self, x: Any, root: int = 0) -> Any:
        return x

    def barrier(self) -> None:
        pass


def test_wrong_results_are_counted() -> None:
    liar: Any = Liar()
    (row,) = measure(liar, Workload("allreduce", 64), [Contender()], Effort(iterations=5))
    assert row.wrong == 5 + Effort().warm_up


def test_rows_survive_json() -> None:
    row = Row("barrier", 0, 0, "float32", "none", -1, 2, "auto", "auto", calls=3, p50=1.5, p99=2)
    back = Row.from_json(row.as_json())
    assert row.as_json()["algbw"] is None
    assert back.as_json() == row.as_json()
    assert math.isnan(back.algbw)
