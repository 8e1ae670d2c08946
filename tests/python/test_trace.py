# SPDX-License-Identifier: Apache-2.0
"""Traces: the file, what is in it, and what becomes of one that cannot be written together."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives import trace_session
from collectives.clocks import Offset
from collectives.symbolic import symbolic_run
from collectives.trace_file import EVENT, document, packed, unpacked
from collectives.tracing import TraceWarning
from tests.python.ranks import on_ranks, on_wired_ranks

P = 3
Event = dict[str, Any]
Work = Callable[[cl.Communicator], Any]
Among = Callable[[int, Work], list[Any]]
BOTH = pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])


def events_of(path: Path) -> list[Event]:
    """Return the events of a file, each of which is as the format wants it."""
    found: list[Event] = json.loads(path.read_text())["traceEvents"]
    for event in found:
        wanted = {"name": str, "ph": str, "pid": int, "tid": int}
        if event["ph"] == "X":
            wanted |= {"ts": float, "dur": float, "cat": str, "args": dict}
        assert {key: type(event[key]) for key in wanted} == wanted
    assert {event["ph"] for event in found} == {"X", "M"}
    return [event for event in found if event["ph"] == "X"]


def of(events: list[Event], category: str, pid: int | None = None) -> list[Event]:
    return [e for e in events if e["cat"] == category and pid in (None, e["pid"])]


def within(inner: Event, outer: Event) -> bool:
    end, latest = inner["ts"] + inner["dur"], outer["ts"] + outer["dur"]
    return bool(
        inner["pid"] == outer["pid"] and outer["ts"] <= inner["ts"] and end <= latest + 1e-6
    )


def again_and_again(comm: cl.Communicator) -> None:
    while True:
        comm.barrier()


def raises_in_its_block(comm: cl.Communicator, path: Path) -> None:
    with comm.trace(path):
        comm.barrier()
        raise KeyError("gone")


@BOTH
def test_a_trace_has_the_calls_of_all_ranks(among: Among, tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def work(comm: cl.Communicator) -> None:
        x = np.ones(3000)
        comm.barrier()
        with comm.trace(path):
            comm.allreduce(x, algorithm="ring")
            comm.allgather(x, async_op=True)
            comm.persistent.broadcast(x, 2)()
            comm.reduce(x.astype(np.int32), op="max", root=1)
            comm.barrier()
            peer = 1 - comm.rank
            if comm.rank < 2:
                comm.sendrecv(x, peer, np.empty_like(x))
            else:
                comm.isend(x, comm.rank)
            half = comm.split(0 if comm.rank < 2 else None)
            if half is not None:
                with half:
                    half.scan(x)
        assert path.exists()  # on all ranks
        comm.allreduce(x)  # which is not recorded

    among(P, work)
    events = events_of(path)
    for rank in range(P):
        calls = [e for e in of(events, "operation", rank) if "new group" not in e["name"]]
        names = ["allreduce", "allgather", "broadcast", "reduce", "barrier", *["scan"] * (rank < 2)]
        assert [call["name"] for call in calls] == names
        told = [(e["args"].get("algorithm"), e["args"]["bytes"]) for e in calls]
        assert told[:2] == [("ring", 24000), (told[1][0], P * 24000)]
        assert calls[3]["args"] | {"op": "max", "dtype": "int32", "root": 1} == calls[3]["args"]
        messages = [e["name"] for e in of(events, "message", rank)]
        assert messages == (["sendrecv"] if rank < 2 else ["isend"])
    around = of(events, "operation") + of(events, "message")
    for step in of(events, "step"):
        assert any(within(step, call) for call in around), step
    for wait in of(events, "wait"):
        outer = of(events, "step", wait["pid"]) + of(events, "message", wait["pid"])
        assert any(within(wait, step) for step in outer), wait
    # On one row what goes on beside each other would hide each other.
    for rank in range(P):
        rows = {e["tid"] for e in events if e["pid"] == rank}
        for row in rows:
            last = 0.0
            for e in (e for e in of(events, "step", rank) if e["tid"] == row):
                assert e["ts"] >= last - 1e-6
                last = e["ts"] + e["dur"]


@pytest.mark.parametrize(("name", "p"), [("ring", 3), ("recursive_doubling", 4), ("circulant", 5)])
def test_what_ranks_send_is_what_the_schedule_says(name: str, p: int, tmp_path: Path) -> None:
    run = symbolic_run(cl.schedule(name, p))
    expected = Counter((m.sender, m.receiver, m.round) for m in run.messages)
    for among, mode in ((on_wired_ranks, None), (on_ranks, "staged")):
        path = tmp_path / f"{mode}.json"

        def work(comm: cl.Communicator, path: Path = path, mode: str | None = mode) -> None:
            with comm.trace(path):
                comm.allreduce(np.ones(p * 8), algorithm=name, mode=mode)

        among(p, work)
        steps = of(events_of(path), "step")
        sent = Counter(
            (e["pid"], e["args"]["peer"], e["args"]["round"])
            for e in steps
            if e["name"].startswith("send")
        )
        got = Counter(
            (e["args"]["peer"], e["pid"], e["args"]["round"])
            for e in steps
            if e["name"].startswith(("receive", "fold from"))
        )
        if mode is None:
            assert (sent, got) == (expected, expected)
        else:  # a send of what has just been written is a part of the step before
            assert sent <= expected
            assert got == expected


@BOTH
def test_others_wait_for_a_late_rank(among: Among, tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def work(comm: cl.Communicator) -> None:
        comm.barrier()
        with comm.trace(path):
            if comm.rank == 1:
                time.sleep(0.05)
            comm.allreduce(np.ones(3), algorithm="recursive_doubling")
            if comm.rank == 1:
                time.sleep(0.05)
                comm.send(np.ones(3), 0)
            elif comm.rank == 0:
                comm.recv(np.ones(3), 1)

    among(2, work)
    events = events_of(path)
    waits = [e for e in of(events, "wait", 0) if e["name"] == "wait for 1"]
    assert sum(e["dur"] for e in waits) >= 80_000
    message = of(events, "message", 0)[0]
    assert sum(e["dur"] for e in waits if within(e, message)) >= 40_000


def test_what_finds_no_room_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def work(comm: cl.Communicator) -> None:
        with comm.trace(path, events=4):
            for _ in range(5):
                comm.barrier()

    on_ranks(2, work)
    events = events_of(path)
    dropped = json.loads(path.read_text())["otherData"]["dropped events"]
    for rank in range(2):
        assert dropped[f"rank {rank}"] >= 3
        assert len([e for e in events if e["pid"] == rank]) == 4


def test_what_cannot_begin_is_told_to_all_ranks(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "t.json"

    def work(comm: cl.Communicator) -> None:
        path = nowhere if comm.rank == 0 else tmp_path / "t.json"
        with pytest.raises(cl.InvalidArgumentError, match=r"rank 0: cannot write .*No such file"):
            comm.trace(path).start()
        comm.barrier()
        with comm.trace(tmp_path / "t.json"):
            with pytest.raises(cl.InvalidArgumentError, match="traces cannot be nested"):
                comm.trace(tmp_path / "u.json").start()
            comm.barrier()
        again = comm.trace(tmp_path / "again.json")
        for _ in range(2):
            again.start()
            with pytest.raises(cl.InvalidArgumentError, match="stop it first"):
                again.start()
            comm.barrier()
            again.stop()
        with pytest.raises(cl.InvalidArgumentError, match="was not started"):
            again.stop()

    on_ranks(2, work)
    assert not (tmp_path / "u.json").exists()
    assert [e["name"] for e in of(events_of(tmp_path / "again.json"), "operation")] == [
        "barrier"
    ] * 2


@BOTH
@pytest.mark.filterwarnings("ignore::collectives.tracing.TraceWarning")
def test_where_a_rank_is_lost_each_writes_its_part(among: Among, tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def work(comm: cl.Communicator) -> None:
        comm.barrier()
        if comm.rank == 1:
            with pytest.raises(KeyError):
                raises_in_its_block(comm, path)
            return
        with comm.trace(path):
            comm.barrier()

    among(P, work)
    assert not path.exists()
    for rank in range(P):
        events = events_of(tmp_path / f"t.rank{rank}.json")
        assert [e["name"] for e in of(events, "operation")] == ["barrier"]
        assert {e["pid"] for e in events} == {rank}


def test_a_call_that_fails_is_told_with_its_waits(tmp_path: Path) -> None:
    def work(comm: cl.Communicator) -> None:
        comm.barrier()
        with comm.trace(tmp_path / "t.json"):
            if comm.rank == 1:
                time.sleep(0.05)
                comm.abort("enough")
            with pytest.raises(cl.AbortedError):
                again_and_again(comm)

    on_ranks(2, work)
    events = events_of(tmp_path / "t.json")
    (failed,) = [e for e in of(events, "operation", 0) if e["args"].get("failed")]
    waits = [e for e in of(events, "wait", 0) if within(e, failed)]
    assert sum(e["dur"] for e in waits) >= 40_000


def test_the_warning_says_where_the_part_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise cl.PeerLostError("rank 1 died", 1)

    (comm,) = cl.local(1)
    trace = comm.trace(tmp_path / "t.json")
    trace.start()
    comm.barrier()
    monkeypatch.setattr(trace_session, "gathered", broken)
    with pytest.warns(TraceWarning, match=r"rank 1 died.*recorded is in .*t\.rank0\.json"):
        trace.stop()
    assert of(events_of(tmp_path / "t.rank0.json"), "operation")
    comm.close()


def test_the_default_communicator_and_all_others_are_traced(tmp_path: Path) -> None:
    path, (before,) = tmp_path / "t.json", cl.local(1)
    try:
        with cl.trace(path):
            cl.allreduce(np.ones(2))
            before.barrier()
            (inside,) = cl.local(1)
            inside.scan(np.ones(2))
            inside.close()
            with before.dup() as made:
                made.broadcast(np.ones(2))
            with pytest.raises(cl.InvalidArgumentError, match="nested"):
                cl.trace(path).start()
        (after,) = cl.local(1)
        after.barrier()
        after.close()
        names = [e["name"] for e in of(events_of(path), "operation")]
        assert {"allreduce", "barrier", "scan", "broadcast"} <= set(names)
        assert names.count("barrier") == 1
    finally:
        cl.init.__globals__["_default"].close()
        before.close()


def test_clocks_of_other_machines_are_brought_to_that_of_rank_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter(["one", "two", "two"])
    monkeypatch.setattr(trace_session, "clock", lambda: next(names))
    path = tmp_path / "t.json"

    def work(comm: cl.Communicator) -> None:
        with comm.trace(path):
            comm.barrier()

    on_wired_ranks(P, work)
    told = json.loads(path.read_text())["otherData"]["clock offsets"]
    assert told  # whoever drew another name than rank 0
    for offset in told.values():
        assert len(offset["nanoseconds"]) == 2
        for nanoseconds in offset["nanoseconds"]:  # it is one clock all the same
            assert abs(nanoseconds) <= offset["uncertainty"]


def test_a_clock_that_drifts_is_followed() -> None:
    told = [{"host": "h", "pid": 1, "clock": name} for name in ("one", "two")]
    head = {"number": 0, "rank": 0, "size": 2, "transport": "tcp", "dropped": 0}
    event = np.zeros(1, EVENT)
    event["begin"], event["end"], event["algorithm"] = 5_000, 5_010, 1
    part = head | {"algorithms": {1: "x"}, "events": event}
    parts = {rank: unpacked(packed([part])) for rank in (0, 1)}
    still, first, last = Offset(0, 0, 0), Offset(1_000, 10_000, 7), Offset(9_000, 10_800, 9)
    made = document(told, parts, [[still, first], [still, last]])
    begins = {e["pid"]: e["ts"] for e in made["traceEvents"] if e["ph"] == "X"}
    assert begins[1] - begins[0] == pytest.approx(10.4)
    assert made["otherData"]["clock offsets"] == {
        "rank 1": {"nanoseconds": [10_000, 10_800], "uncertainty": 9}
    }


def test_rows_have_names(tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def work(comm: cl.Communicator) -> None:
        with comm.trace(path):
            comm.allreduce(np.ones(4), algorithm="ring")

    on_wired_ranks(2, work)
    named = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "M"]
    ranks = [e["args"]["name"] for e in named if e["name"] == "process_name"]
    assert [re.sub(r" \(.*", "", name) for name in ranks] == ["rank 0", "rank 1"]
    rows = {e["args"]["name"] for e in named if e["name"] == "thread_name" and e["pid"] == 0}
    label = "communicator 0: rank 0 of 2, tcp"
    assert {label, f"{label} to 1", f"{label} from 1", f"{label} folds"} <= rows


def test_what_an_operation_is_a_part_of(tmp_path: Path) -> None:
    path = tmp_path / "t.json"

    def work(comm: cl.Communicator) -> None:
        with comm.trace(path):
            plan = comm.sparse_plan(np.arange(20_000), length=20_000)
            plan.reduce(np.ones(20_000))
            comm.sparse_plan([comm.rank], [0], length=9).reduce(np.ones(1))
            comm.allreduce(cl.Sparse(np.arange(3), np.ones(3), 9))
            comm.allreduce(np.ones(8), op="adasum")

    on_ranks(2, work)
    events = events_of(path)
    names = {event["name"] for event in of(events, "operation")}
    assert names == {"sparse_plan", "plan.reduce", "sparse allreduce", "adasum"}
    for event in of(events, "message"):
        assert 0 <= event["args"].get("bytes", 0) < 1 << 40
        assert event["args"].get("peer", 0) >= 0
