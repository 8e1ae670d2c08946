# SPDX-License-Identifier: Apache-2.0
"""What is not worth a race: on all ranks alike, and never what may be the fastest."""

from __future__ import annotations

from dataclasses import replace

import pytest

import collectives as cl
from collectives.machine_costs import MachineCosts, usual_costs
from collectives.topology import Link, Place, Topology
from collectives.tuning.candidates import candidates
from collectives.tuning.modelled import predicted
from collectives.tuning.pruning import FACTOR, pruned
from collectives.tuning.table import Choice
from tests.python.ranks import on_ranks

OTHER = Choice("allreduce", 1 << 20, "chain", "staged", 3, 12345)  # which no prediction is made of


@pytest.mark.parametrize("p", [2, 3])
def test_what_is_far_behind_is_left_out_on_all_ranks(p: int) -> None:
    costs = usual_costs().placed(far=True)
    every = [*candidates("allreduce", p, 1 << 20, True), OTHER]

    def work(comm: cl.Communicator) -> list[Choice]:
        # The costs of rank 0 count.
        own = costs if comm.rank == 0 else replace(costs, op=1.0)
        return pruned(comm, own, "allreduce", 1 << 20, every)

    first, *others = on_ranks(p, work)
    assert all(one == first for one in others)
    assert first[-1] == OTHER
    by_time = predicted(costs, "allreduce", 1 << 20, p)
    limit = FACTOR * by_time[0].seconds
    assert {one.choice for one in by_time if one.seconds <= limit} <= set(first)
    assert len(first) < len(every)
    assert first == [choice for choice in every if choice in first]


def test_between_machines_links_say_what_is_far_behind() -> None:
    links = Topology(tuple(Place(name) for name in "abcd"), {"network": Link(3e-5, 8e-9)})
    every = candidates("reduce", 4, 1 << 20, False)
    first, *others = on_ranks(4, lambda comm: pruned(comm, links, "reduce", 1 << 20, every))
    assert all(one == first for one in others)
    assert {"chain", "double_tree"} <= {choice.algorithm for choice in first}
    assert "direct" not in {choice.algorithm for choice in first}  # all through one port


@pytest.mark.parametrize(("p", "costs"), [(2, None), (5, usual_costs())])
def test_where_nothing_is_predicted_all_race(p: int, costs: MachineCosts | None) -> None:
    every = candidates("broadcast", p, 8, True)
    assert on_ranks(p, lambda comm: pruned(comm, costs, "broadcast", 8, every)) == [every] * p
