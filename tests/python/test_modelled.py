# SPDX-License-Identifier: Apache-2.0
"""The plan that the cost models say is the fastest: by hand, on all ranks alike. Never speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import collectives as cl
from collectives.machine_costs import Curve, MachineCosts, usual_costs
from collectives.prediction import predict, predict_wire
from collectives.topology import Link, Place, Topology
from collectives.tuning.candidates import candidates
from collectives.tuning.modelled import agreed, modelled, predicted, wire_seconds
from collectives.tuning.table import Choice
from tests.python.ranks import on_ranks

MIB = 1 << 20


def flat(seconds: float) -> Curve:
    return Curve((1.0, 2.0, 3.0, 4.0), (seconds,) * 4)


def by_hand(flag: float, read: float) -> MachineCosts:
    """Return costs of a machine on which only flags and reading of what others wrote cost."""
    free, usual = flat(0.0), usual_costs()
    between = replace(
        usual.near, flag=flag, read=flat(read), write=free, streamed_read=free, streamed_write=free
    )
    return replace(
        usual, op=0.0, call=0.0, turn=0.0, fold=0.0, read=free, write=free, stream=free,
        cores=0, near=between, far=replace(between, measured=False),
    )  # fmt: skip


def test_flags_alone_want_few_rounds_and_bytes_alone_want_few_bytes() -> None:
    by_rounds, by_bytes = by_hand(1e-3, 1e-12), by_hand(0.0, 1e-9)
    assert modelled(by_rounds, "allreduce", 8, 4).algorithm == "direct_one_shot"
    least = modelled(by_bytes, "allreduce", 8 * MIB, 4)
    seconds = predict(
        by_bytes, "allreduce", least.algorithm, 8 * MIB, 4,
        lag=least.lag, tile_bytes=least.tile_bytes, agrees=True, alone=True,
    )  # fmt: skip
    # A rank reads at least three quarters of the vector twice; in one shot, three vectors.
    assert seconds == pytest.approx(1.5 * 8 * MIB * 1e-9, rel=0.1)


def test_the_first_of_all_candidates_is_chosen_and_ties_stay_in_order() -> None:
    costs = usual_costs()
    found = predicted(costs, "allgather", 1024, 3)
    every = candidates("allgather", 3, 1024, True)
    assert {one.choice for one in found} == set(every)
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)
    assert modelled(costs, "allgather", 1024, 3) == found[0].choice
    free = by_hand(0.0, 0.0)
    assert [one.choice for one in predicted(free, "allgather", 1024, 3)] == every


def test_short_calls_are_looked_at_alone_and_one_after_another() -> None:
    costs = usual_costs()
    first = predicted(costs, "broadcast", 8, 4)[0]
    alone, following = (
        predict(
            costs, "broadcast", first.choice.algorithm, 8, 4,
            mode=first.choice.mode, lag=first.choice.lag, alone=alone,
        )
        for alone in (True, False)
    )  # fmt: skip
    assert following < first.seconds < alone
    assert first.seconds**2 == pytest.approx(alone * following)


def test_short_calls_between_hosts_are_looked_at_both_ways_and_long_ones_alone() -> None:
    words = "hosts:8x1,gbit=1,us=30"
    # One after another, no rank of a chain sends twice; but the last hears of a call seven hops on.
    chain, tree = (
        [
            predict_wire(words, "broadcast", name, 6000, 8, lag=0, pace=4, alone=alone)
            for alone in (True, False)
        ]
        for name in ("chain", "binomial")
    )
    assert chain[0] > tree[0]
    assert chain[1] < tree[1]
    found = {one.choice: one.seconds for one in predicted(words, "broadcast", 6000, 8)}
    whole = Choice("broadcast", 6000, "chain", "wire", 0, 0)
    assert found[whole] ** 2 == pytest.approx(chain[0] * chain[1], rel=0.05)
    long = predicted(words, "broadcast", 64 << 10, 8)[0]
    assert long.seconds == wire_seconds(words, long.choice, 8)


def test_far_cores_are_seen() -> None:
    usual = usual_costs()
    slow = replace(usual.far, measured=True, flag=1e-3)
    apart = replace(usual, far=slow)
    near = predicted(usual, "reduce", 8, 2)[0].seconds
    assert predicted(apart, "reduce", 8, 2)[0].seconds > 1e-4 > near


def test_every_collective_has_a_choice_in_memory_and_on_a_network() -> None:
    costs = usual_costs()
    for kind in ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "alltoall"):
        for p in (2, 5):
            for nbytes in (8, 100_000):
                assert modelled(costs, kind, nbytes, p) in candidates(kind, p, nbytes, True)
        network = modelled("hosts:4x1,gbit=1,us=30", kind, 6000, 4)
        assert network in candidates(kind, 4, 6000, False)


def test_a_file_that_is_named_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "links.json"
    for link in (Link(1e-6, 1e-6), Link(1e-2, 1e-12)):
        links = Topology(tuple(Place(name) for name in "abcd"), {"network": link})
        links.save(path)
        assert modelled(str(path), "allreduce", 1 << 16, 4) == modelled(
            links, "allreduce", 1 << 16, 4
        )


def test_between_hosts_it_is_the_first_by_predict_wire() -> None:
    topology = Topology(tuple(Place(f"host{i}") for i in range(4)), {"network": Link(30e-6, 8e-9)})
    found = {}
    for choice in candidates("broadcast", 4, MIB, False):
        found[choice] = predict_wire(
            topology, "broadcast", choice.algorithm, MIB, 4,
            lag=choice.lag, tile_bytes=choice.tile_bytes, pace=4, alone=True,
        )  # fmt: skip
    chosen = modelled(topology, "broadcast", MIB, 4)
    assert found[chosen] == min(found.values())
    assert chosen.mode == "wire"
    assert found[chosen] < 2 * MIB * 8e-9  # in a pipeline: a tree of whole chunks sends it twice


def test_ranks_agree_on_the_choice_of_rank_0() -> None:
    flags, read = by_hand(1e-3, 1e-12), by_hand(0.0, 1e-9)

    def work(comm: cl.Communicator) -> Any:
        return agreed(comm, flags if comm.rank == 0 else read, "allreduce", 8)

    assert on_ranks(3, work) == [modelled(flags, "allreduce", 8, 3)] * 3


def test_what_rank_0_cannot_predict_is_an_error_on_all_ranks() -> None:
    def work(comm: cl.Communicator) -> str:
        costs = "hosts:2x1" if comm.rank == 0 else usual_costs()
        with pytest.raises(cl.InvalidArgumentError) as caught:
            agreed(comm, costs, "allreduce", 8)
        assert agreed(comm, usual_costs(), "allreduce", 8).kind == "allreduce"
        return str(caught.value)

    first, second = on_ranks(2, work)
    assert "give a MachineCosts where they share memory" in first
    assert "rank 0 could not predict" in second


def test_what_is_refused() -> None:
    costs = usual_costs()
    refused: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: predicted(None, "allreduce", 8, 2), "costs is a NoneType: give the MachineCosts"),  # type: ignore[arg-type]
        (lambda: predicted(costs, "allsum", 8, 2), "allsum"),
        (lambda: predicted(costs, "allreduce", -8, 2), "nbytes is -8"),
        (lambda: predicted(costs, "allreduce", 8, 0), "for 0 ranks"),
        (lambda: predicted("hosts:2x1", "allreduce", 8, 3), "fewer than 3"),
    )
    for call, sentence in refused:
        with pytest.raises(cl.InvalidArgumentError, match=sentence):
            call()
