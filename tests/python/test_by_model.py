# SPDX-License-Identifier: Apache-2.0
"""Choices by the cost model: on all ranks, explained as such, until something else is chosen by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import collectives as cl
from collectives.tuning.known_costs import probed
from collectives.tuning.modelled import modelled
from collectives.tuning.table import RULE, TunedTable
from collectives.tuning.wanted import KINDS
from tests.python.ranks import on_ranks

BUDGET = 5.0


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
            assert "predicts to be the fastest" in str(told)
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


def test_links_of_ucx_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    (comm,) = cl.local(1)
    monkeypatch.setattr(type(comm), "transport", "ucx")
    assert probed(comm, 1.0) is None
    with pytest.raises(cl.UnsupportedError, match="bytes go by UCX"):
        comm.use_model()


@pytest.mark.parametrize("p", [2, 4])
def test_it_is_what_the_model_says(p: int) -> None:
    """Of what is explained nothing else is predicted to be faster."""

    def work(comm: cl.Communicator) -> None:
        comm.use_model(30.0)
        costs = comm._known_costs
        if p == 2:
            costs = costs.placed(far=False)
        for kind in KINDS:
            for nbytes in (8, 4096, 100_000, 1 << 20, 256 << 20):
                told = comm.explain(kind, nbytes)
                assert told.source == "predicted"
                assert told.choice.algorithm == modelled(costs, kind, nbytes, p).algorithm
                assert told.predicted is not None
                others = [rival.predicted for rival in told.rivals if rival.predicted is not None]
                assert min(others, default=1e9) >= told.predicted

    on_ranks(p, work)


def test_what_there_is_no_time_for_is_left_to_the_rules() -> None:
    def work(comm: cl.Communicator) -> TunedTable:
        return comm.use_model(1e-9)

    table = on_ranks(3, work)[0]
    assert table.predicted
    assert all(choice.algorithm == RULE for choice in table.choices)


def test_a_table_says_that_it_was_predicted(tmp_path: Path) -> None:
    path = str(tmp_path / "model.json")

    def work(comm: cl.Communicator) -> None:
        table = comm.use_model(BUDGET)
        if comm.rank == 0:
            table.save(path)
            assert TunedTable.load(path) == table
        comm.use_table(path)
        assert comm.explain("allreduce", 8).source == "predicted"
        comm.use_table(replace(table, predicted=False))
        assert comm.explain("allreduce", 8).source == "measured"

    on_ranks(2, work)
    text = Path(path).read_text().replace('"predicted": true', '"predicted": 3')
    Path(path).write_text(text)
    with pytest.raises(cl.InvalidArgumentError, match="whether it was predicted"):
        TunedTable.load(path)
