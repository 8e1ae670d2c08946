# SPDX-License-Identifier: Apache-2.0
"""Whether NCCL may be chosen, and for which calls: what all ranks tell alike."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives import arrays
from collectives.arrays import DTYPES, Operand
from collectives.names import AUTOMATIC, OF_RIVALS, OPS, RIVALS, how
from collectives.nccl import Version, find
from collectives.rivals.fitting import FUNCTIONS, Fit, arguments, fitting, lacks, lies_well, whole
from collectives.rivals.hosts import Hosts
from collectives.rivals.identity import this_host, uuid_of
from collectives.rivals.standing import Facts, facts_of, why_not
from collectives.rivals.talk import ROW
from collectives.tuning.forced import wished_kinds, wished_of_rivals
from tests.python.ranks import on_ranks

NEW, OLD = Version(2, 30, 7).code, Version(2, 29, 7).code
ONE, OTHER = bytes([1]) * 16, bytes([2]) * 16


def test_facts_travel_whole() -> None:
    for facts in (
        Facts("", NEW, True, ONE, OTHER),
        Facts("there is no libnccl"),
        Facts("x" * 9999),
    ):
        row = facts.packed()
        assert len(row) <= ROW
        again = Facts.of_row(row.ljust(ROW, b"\0"))
        assert again[1:] == facts[1:]
        assert facts.why.startswith(again.why)
        assert bool(again.why) == bool(facts.why)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ([Facts("", NEW, False, ONE), Facts("", NEW, False, OTHER)], ""),
        ([Facts("", NEW, True, ONE), Facts("", NEW, True, ONE)], ""),
        ([Facts("", NEW, True, ONE), Facts("", NEW, False, ONE)], "ranks 0 and 1 share a GPU"),
        ([Facts("", OLD, True, ONE), Facts("", OLD, True, ONE)], "ranks 0 and 1 share a GPU"),
        ([Facts("", NEW, False, ONE), Facts("none")], "rank 1: none"),
        (
            [Facts("", NEW, False, ONE), Facts("", OLD, False, OTHER)],
            "rank 1 has NCCL 2.29.7, and rank 0 2.30.7",
        ),
    ],
)
def test_all_ranks_need_the_same_nccl_and_a_gpu_each(facts: list[Facts], why: str) -> None:
    found = why_not(facts, range(len(facts)))
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_within_a_host_others_do_not_count() -> None:
    apart = Facts("", OLD, False, OTHER)
    facts = [apart, *(Facts("", NEW, True, ONE) for _ in range(2)), apart]
    assert why_not(facts, [1, 2]) == ""
    assert why_not(facts, [0, 3]).startswith("ranks 0 and 3 share a GPU")


@pytest.mark.parametrize(
    ("of_rank", "columns", "even", "in_order", "why"),
    [
        ("aabb", 2, True, True, ""),
        ("bbaa", 2, True, True, ""),
        ("abab", 2, True, False, ""),
        ("aaa", 3, True, True, "all ranks are on one host"),
        ("abc", 1, True, True, "each host has one rank alone"),
        ("aab", 1, False, True, ""),
        ("aabaabb", 3, False, False, ""),
    ],
)
def test_ranks_by_hosts(of_rank: str, columns: int, even: bool, in_order: bool, why: str) -> None:
    hosts = Hosts(of_rank)
    assert (hosts.columns, hosts.even) == (columns, even)
    assert (hosts.in_order, hosts.why_flat()) == (in_order, why)
    for rank in range(len(of_rank)):
        host, number = hosts.place(rank)
        assert hosts.members[host][number] == rank


def test_this_host_has_an_identity() -> None:
    assert len(this_host()) == 16
    assert this_host() == this_host()


def test_the_variable_leaves_it_out_and_names_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(find.VARIABLE, find.OFF)
    assert facts_of(0).why == "COLLECTIVES_NCCL is off"
    monkeypatch.setattr("collectives.nccl.find.loaded", lambda *_: [])
    assert find.find("/proc/self/exe").how == "path"
    assert find.find().how != find.VARIABLE


@pytest.mark.skipif(sys.platform != "linux", reason="the driver is Linux's")
def test_without_a_driver_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError(f"{name}: cannot open")

    monkeypatch.setattr("ctypes.CDLL", missing)
    with pytest.raises(cl.UnsupportedError, match=r"no driver of CUDA .* libcuda.so.1: cannot"):
        uuid_of(0)


class Driver:
    """A driver that knows GPU 0, and of which `fails` does."""

    def __init__(self, fails: str = "") -> None:
        self._fails = fails

    def cuInit(self, flags: int) -> int:  # noqa: N802  their names
        return 100 if self._fails == "cuInit" else flags

    def cuDeviceGet(self, number: Any, device: int) -> int:  # noqa: N802
        return 101 if device else 0

    def cuDeviceGetUuid_v2(self, uuid: Any, number: Any) -> int:  # noqa: N802
        uuid.raw = ONE
        return 0


def test_a_driver_tells_gpus_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: Driver())
    assert uuid_of(0) == ONE
    with pytest.raises(cl.UnsupportedError, match="GPU 3: cuDeviceGet: 101"):
        uuid_of(3)
    monkeypatch.setattr("ctypes.CDLL", lambda name: Driver("cuInit"))
    with pytest.raises(cl.UnsupportedError, match="cuInit: 100"):
        uuid_of(0)


@pytest.mark.parametrize(
    ("kind", "dtype", "op", "fits"),
    [
        ("allreduce", "float32", "sum", True),
        ("allreduce", "bfloat16", "prod", True),
        ("reduce", "int64", "max", True),
        ("reduce_scatter", "float64", "max", False),  # a NaN is our result
        ("allreduce", "float32", "avg", False),  # we divide at the end
        ("allreduce", "int16", "sum", False),
        ("allreduce", "bool", "sum", False),
        ("allreduce", "complex64", "sum", False),
        ("allreduce", "float8_e5m2", "sum", False),
        ("allgather", "complex128", "sum", True),
        ("broadcast", "int16", "sum", True),
        ("scan", "float32", "sum", False),
    ],
)
def test_what_nccl_does_with_our_results(kind: str, dtype: str, op: str, fits: bool) -> None:
    assert isinstance(fitting(kind, DTYPES[dtype], OPS[op], AUTOMATIC, None), Fit) == fits


def test_options_that_nccl_has_not() -> None:
    dtype = DTYPES["float32"]
    for options in (
        how("allreduce", None, "staged", None),
        how("allreduce", None, None, None, "float64"),
        how("allreduce", None, None, None, None, True),
    ):
        assert "NCCL has no mode=" in str(fitting("allreduce", dtype, 0, options, None))
    assert "unequal" in str(fitting("allgather", dtype, 0, AUTOMATIC, [1, 2]))
    timed = how("allreduce", "nccl", None, 5.0)
    assert timed[0] == RIVALS["nccl"]
    assert isinstance(fitting("allreduce", dtype, 0, timed, None), Fit)
    assert set(FUNCTIONS) == set(OF_RIVALS["nccl"])


def test_an_exchange_needs_a_newer_one() -> None:
    fit = fitting("alltoall", DTYPES["float32"], 0, AUTOMATIC, None)
    assert isinstance(fit, Fit)
    assert lacks(fit, Version(2, 27)) == "ncclAlltoAll came with NCCL 2.28.0, here is 2.27.0"
    assert lacks(fit, Version(2, 28, 3)) == ""


def side(x: Any) -> Operand:
    return arrays.operand(x, "x")


def test_what_nccl_is_passed_and_where_arrays_may_lie() -> None:
    def fit(kind: str) -> Fit:
        found = fitting(kind, DTYPES["int32"], OPS["max"], AUTOMATIC, None)
        assert isinstance(found, Fit)
        return found

    x, out = np.zeros(12, "i4"), np.zeros(12, "i4")
    at, to = x.ctypes.data, out.ctypes.data
    one, other, part = side(x), side(out), side(x[4:8])
    assert arguments(fit("allreduce"), one, other, 0, 3) == (at, to, 12, 2, 2)
    assert arguments(fit("reduce"), one, None, 2, 3) == (at, 0, 12, 2, 2, 2)
    assert arguments(fit("broadcast"), one, one, 1, 3) == (at, at, 48, 1, 1)
    assert arguments(fit("reduce_scatter"), one, part, 0, 3) == (at, at + 16, 4, 2, 2)
    assert arguments(fit("allgather"), part, other, 0, 3) == (at + 16, to, 16, 1)
    assert arguments(fit("alltoall"), one, other, 0, 3) == (at, to, 16, 1)
    for kind in OF_RIVALS["nccl"]:
        assert lies_well(fit(kind), one, other, 1, 3)
        assert lies_well(fit(kind), one, one, 0, 3) == (kind != "alltoall")
    assert lies_well(fit("reduce"), one, None, 1, 3)
    assert lies_well(fit("reduce_scatter"), one, part, 1, 3)
    assert not lies_well(fit("reduce_scatter"), one, part, 2, 3)
    assert lies_well(fit("allgather"), part, one, 1, 3)
    assert not lies_well(fit("allgather"), part, one, 0, 3)
    assert not lies_well(fit("allreduce"), side(x[:8]), side(x[4:]), 0, 3)
    assert whole(part, one) == whole(one, None) == 48


def test_wishes_for_nccl_are_apart_from_ours() -> None:
    words = "allreduce:nccl,allreduce:ring,broadcast:chain,reduce:mixed"
    assert wished_of_rivals(words) == {"allreduce": "nccl", "reduce": "mixed"}
    assert wished_kinds(words) == ("allreduce", "broadcast")
    assert wished_of_rivals("") == {}
    assert wished_kinds("") == ()


def test_arrays_of_the_host_know_nothing_of_it() -> None:
    def work(comm: cl.Communicator) -> None:
        comm.allreduce(np.ones(3))
        assert comm._nccl is None
        with pytest.raises(cl.UnsupportedError, match="is for calls of arrays on GPUs"):
            comm.allreduce(np.ones(3), algorithm="nccl")
        with pytest.raises(cl.InvalidArgumentError, match="scan: algorithm 'nccl' is unknown"):
            comm.scan(np.ones(3), algorithm="nccl")
        told = comm.explain("allreduce", 8, device="cuda")
        assert (told.choice, told.ranks, told.rounds, told.ours) == ("open", 2, 0, None)
        with pytest.raises(cl.InvalidArgumentError, match="explain: device"):
            comm.explain("allreduce", device="tpu")  # type: ignore[call-overload]
        with pytest.raises(cl.InvalidArgumentError, match="explain: dtype"):
            comm.explain("allreduce", device="cuda", dtype="float31")

    on_ranks(2, work)


def test_the_variable_may_wish_for_it_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTIVES_ALGORITHM", "allreduce:nccl,allreduce:ring")
    (comm,) = cl.local(1)
    comm.close()
    monkeypatch.setenv("COLLECTIVES_ALGORITHM", "allreduce:nccl,broadcast:nccl,allreduce:mixed")
    with pytest.raises(cl.InvalidArgumentError, match="allreduce is there twice"):
        cl.local(1)
    monkeypatch.setenv("COLLECTIVES_ALGORITHM", "alltoall:mixed")
    with pytest.raises(cl.InvalidArgumentError, match="alltoall has no algorithm 'mixed'"):
        cl.local(1)
    monkeypatch.setenv("COLLECTIVES_ALGORITHM", "scan:nccl")
    with pytest.raises(cl.InvalidArgumentError, match="scan has no algorithm 'nccl'"):
        cl.local(1)
