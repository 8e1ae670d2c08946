# SPDX-License-Identifier: Apache-2.0
"""Choices by the cost model: on all ranks, explained as such, until something else is chosen by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.machine_costs import usual_costs
from collectives.topology import Link, Place, Topology
from collectives.tuning.by_model import probed, table_of
from collectives.tuning.modelled import modelled
from collectives.tuning.table import TunedTable
from collectives.tuning.wanted import KINDS, WIRE_SIZES
from tests.python.ranks import on_ranks

BUDGET = 0.02


@pytest.mark.parametrize("p", [2, 3])
def test_all_ranks_choose_what_is_predicted(p: int) -> None:
    def work(comm: cl.Communicator) -> TunedTable:
        table = comm.use_model(BUDGET)
        for kind, nbytes in (("allreduce", 8), ("broadcast", 1 << 20)):
            told = comm.explain(kind, nbytes)
            chosen = table.of(kind, nbytes)
            assert told.source == "predicted"
            assert chosen is not None
            assert told.choice.algorithm == chosen.algorithm
            assert told.predicted is not None
            assert "predicted to be" in str(told)
        x = np.full(1000, comm.rank, np.float32)
        comm.allreduce(x)
        assert (x == sum(range(p))).all()
        with comm.dup() as other:
            assert other.explain("allreduce", 8).source == "predicted"
        comm.use_table(None)
        assert comm.explain("allreduce", 8).source == "rule"
        return table

    tables = on_ranks(p, work)
    assert all(table == tables[0] for table in tables)
    assert {choice.kind for choice in tables[0].choices} == set(KINDS)


def test_a_race_counts_for_more_and_less_is_refused() -> None:
    def work(comm: cl.Communicator) -> None:
        comm.use_model(BUDGET)
        comm.tune(0.2, kinds=["allreduce"], sizes=[8])
        assert comm.explain("allreduce", 8).source == "measured"
        with comm.force(allreduce="ring"), pytest.raises(cl.InvalidArgumentError, match="force"):
            comm.use_model(BUDGET)
        with pytest.raises(cl.InvalidArgumentError, match="use_model: budget_s is 'x': give sec"):
            comm.use_model("x")  # type: ignore[arg-type]
        with pytest.raises(cl.InvalidArgumentError, match="use_model: the arguments of rank 1"):
            comm.use_model(BUDGET * (1 + comm.rank))

    on_ranks(2, work)
    assert on_ranks(1, lambda comm: comm.use_model(BUDGET))[0].choices == ()


def test_links_of_ucx_are_not_known() -> None:
    comm: Any = SimpleNamespace(transport="ucx", size=2)
    with pytest.raises(cl.UnsupportedError, match="bytes go by UCX"):
        probed(comm, BUDGET)


def test_the_table_has_what_the_model_says() -> None:
    links = Topology(
        tuple(Place(name) for name in "abc"), {"network": Link(3e-5, 8e-9, overhead=5e-6)}
    )
    table = table_of(links, 3, "here", "tcp")
    for kind in KINDS:
        for nbytes in WIRE_SIZES:
            said, found = modelled(links, kind, nbytes, 3), table.of(kind, nbytes)
            assert found is not None
            assert (found.algorithm, found.lag) == (said.algorithm, said.lag)
    costs = usual_costs()
    two = table_of(costs, 2, "here", "memory")
    for far in (False, True):
        said = modelled(costs.placed(far), "allreduce", 1 << 20, 2)
        chosen = two.of("allreduce", 1 << 20, far)
        assert chosen is not None
        assert chosen.tile_bytes == said.tile_bytes
