# SPDX-License-Identifier: Apache-2.0
"""Costs of a machine and predictions from Python: values, JSON, what is refused. Never speed."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.machine_costs import Curve, MachineCosts, load_costs, usual_costs
from collectives.machine_probe import measured_costs
from collectives.prediction import predict, predict_wire
from collectives.topology import Link, Place, Topology
from tests.python.ranks import on_ranks

MIB = 1 << 20


def flat(seconds: float) -> Curve:
    return Curve((1.0, 2.0, 3.0, 4.0), (seconds,) * 4)


def by_hand() -> MachineCosts:
    """Return costs with which only reading and writing between cores cost anything."""
    free = flat(0.0)
    usual = usual_costs()
    between = replace(usual.near, flag=0.0, read=flat(1e-9), write=flat(2e-9), streamed_read=free)
    return replace(
        usual, op=0.0, call=0.0, fold=0.0, read=free, write=free, stream=free, near=between
    )


def test_one_shot_by_hand() -> None:
    found = predict(by_hand(), "allreduce", "direct_one_shot", MIB, 2)
    assert found == pytest.approx(3e-9 * MIB, rel=0.01)
    assert predict(by_hand(), "allreduce", "direct_two_shot", MIB, 2) == pytest.approx(
        found, rel=0.01
    )


def test_all_algorithms_are_predicted() -> None:
    costs = usual_costs()
    for a in cl.algorithms():
        for p in (2, 3, 8):
            if not a.fits(p):
                continue
            near = predict(costs, a.kind, a.name, MIB, p, tile_bytes=1 << 16)
            assert 0 < near < 1, a.name
            assert predict(costs, a.kind, a.name, MIB, p, mode="push", alone=True) > 0, a.name
            assert predict_wire("hosts:8x1", a.kind, a.name, MIB, p, tile_bytes=1 << 14) > 0


def test_far_cores_are_slower() -> None:
    costs = usual_costs()
    near = predict(costs, "allreduce", "ring", MIB, 4)
    far = predict(costs, "allreduce", "ring", MIB, 4, far=True)
    slow = predict(costs, "allreduce", "ring", MIB, 4, far=True, streams=False)
    assert near < slow
    assert far < slow


def test_a_call_of_one_tile_without_lag_streams_nothing() -> None:
    """Such a call is run as a list of steps, of which none goes around the caches."""

    def far(lag: int, nbytes: int, streams: bool) -> float:
        return predict(
            usual_costs(), "allgather", "ring", nbytes, 2, lag=lag, far=True, streams=streams
        )

    assert far(0, MIB // 4, True) == far(0, MIB // 4, False)
    assert far(1, MIB // 4, True) != far(1, MIB // 4, False)
    assert far(0, 16 * MIB, True) != far(0, 16 * MIB, False)  # several tiles


def test_what_is_measured_is_the_same_on_all_ranks() -> None:
    def work(comm: cl.Communicator) -> Any:
        found = measured_costs(comm, 0.004)
        return found, comm.allreduce(np.ones(5))[0]

    for p in (1, 3):
        results = on_ranks(p, work)
        costs = results[0][0]
        assert results == [(costs, p)] * p
        assert costs.near.measured + costs.far.measured == (p > 1)
        assert predict(costs, "allreduce", "ring", MIB, 2) > 0
        assert MachineCosts.from_json(costs.to_json()) == costs


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(usual_costs().to_json())
    assert load_costs(path) == usual_costs()
    path.write_text("{}")
    with pytest.raises(cl.InvalidArgumentError, match=r"costs\.json does not say that its format"):
        load_costs(path)


def changed(**values: Any) -> str:
    return json.dumps(json.loads(usual_costs().to_json()) | values)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not JSON"),
        ("[]", "its format"),
        (b"\xff\xfe\xfa", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (" " * (1 << 21), "has more than"),
        (changed(version=1), "has version 1; this library reads 2"),
        (changed(op=-1.0), "op is -1.0: give seconds"),
        (changed(op=math.nan), "op is nan: give seconds"),
        (changed(cores=0.5), "cores is 0.5"),
        (changed(more=1), "an object with the keys"),
        (changed(read=[1]), "read is"),
        (changed(read={"nbytes": [1, 2, 3, 3], "seconds_per_byte": [0] * 4}), "read: nbytes is"),
        (changed(read={"nbytes": [1, 2, 3], "seconds_per_byte": [0] * 4}), "give 4 numbers"),
        (changed(near={}), "near is"),
    ],
)
def test_foreign_files_are_refused(text: str | bytes, sentence: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=sentence):
        MachineCosts.from_json(text)


def test_what_is_refused() -> None:
    costs = usual_costs()
    for call, sentence in (
        (lambda: predict(costs, "allreduce", "rung", 8, 2), "rung"),
        (lambda: predict(costs, "allreduce", "ring", -8, 2), "nbytes is -8"),
        (lambda: predict(costs, "allreduce", "ring", 8, 2, mode="auto"), "mode"),
        (lambda: predict(costs, "allreduce", "ring", 8, 5000), "1 to 1024 ranks"),
        (lambda: predict(costs, "allreduce", "ring", 8, 2, lag=-1), "lag is -1"),
        (lambda: predict(costs, "allreduce", "ring", 8, 2, lag=65), "lag is 0 to 64 tiles"),
        (lambda: predict_wire("hosts:2x1", "allreduce", "ring", 8, 2, lag=1000), "0 to 64 tiles"),
        (lambda: predict(None, "allreduce", "ring", 8, 2), "costs is a NoneType"),  # type: ignore[arg-type]
        (lambda: predict_wire("hosts:2x1", "allreduce", "ring", 8, 3), "fewer than 3"),
        (lambda: replace(costs, near=3), "near is 3: give a CoreCosts"),  # type: ignore[arg-type]
    ):
        with pytest.raises(cl.InvalidArgumentError, match=sentence):
            call()
    with pytest.raises(cl.UnsupportedError):
        predict(costs, "allgather", "recursive_doubling", 8, 3)
    with pytest.raises(cl.InvalidArgumentError, match=r"0.001 to 60 seconds"):
        on_ranks(1, lambda comm: measured_costs(comm, 0))


def test_hosts_that_share_cores_take_longer() -> None:
    link = Link(2e-5, 8e-9, overhead=1e-5)
    apart = Topology(tuple(Place(name, cpus=(0, 1)) for name in "abcd"), {"network": link})
    shared = apart.edited(places={i: replace(apart.places[i], machine="a") for i in range(4)})
    alone, crowded = (
        predict_wire(links, "allgather", "recursive_doubling", 8, 4, alone=True)
        for links in (apart, shared)
    )
    assert alone == pytest.approx(4e-5, rel=0.01)
    assert crowded == pytest.approx(8e-5, rel=0.01)  # two rounds of four messages, by two cores


def test_cores_are_those_of_the_ranks_that_play() -> None:
    link = Link(2e-5, 8e-9, overhead=1e-5)
    four = tuple(Place(name, cpus=(0,), machine="a") for name in "abcd")
    more = tuple(Place(name, cpus=(1,), machine="a") for name in "efgh")
    own, first = (
        predict_wire(Topology(places, {"network": link}, {(0, 1): link}), "allgather", "ring", 8, 4)
        for places in (four, four + more)
    )
    assert own == first


def test_what_takes_for_ever_is_refused() -> None:
    for link in (Link(1, 1, 1, 0, 1e308), Link(1e308, 1e308)):
        links = Topology((Place("a"), Place("b")), {"network": link})
        with pytest.raises(cl.InvalidArgumentError, match="longer than a number can say"):
            predict_wire(links, "allreduce", "ring", 1 << 20, 2)


def test_who_shares_cores_is_known_without_a_probe() -> None:
    def predicted(comm: cl.Communicator) -> float:
        comm.barrier()
        found = comm.explain("allreduce", 8).predicted
        assert found is not None
        return found

    cores = len(os.sched_getaffinity(0))
    p = 2 * cores + 1
    alone = predict(usual_costs(), "allreduce", "direct_one_shot", 8, p, mode="inline", lag=0)
    assert on_ranks(p, predicted)[0] > 2 * alone
