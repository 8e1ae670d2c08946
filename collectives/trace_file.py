# SPDX-License-Identifier: Apache-2.0
"""The file of a trace, in Chrome's Trace Event Format, which Perfetto reads as well.

A process is a rank; a thread is a communicator, and between machines one each for its messages to
and from every other rank, its folds and its waits.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from collectives._ffi import ffi, lib, text
from collectives.arrays import NAMES as DTYPE_NAMES
from collectives.clocks import Offset
from collectives.last import MODE_NAMES
from collectives.names import KIND_NAMES, OPS
from collectives.whole_file import write_whole

# As coll_trace_event.
EVENT = np.dtype(
    [(name, "<i8") for name in ("begin", "end", "call", "bytes")]
    + [
        (name, "<i4")
        for name in (
            "what", "act", "kind", "parts", "dtype", "op", "algorithm", "mode", "purpose",
            "failed", "peer", "peers", "round", "tile",
        )
    ]
)  # fmt: skip
assert EVENT.itemsize == ffi.sizeof("coll_trace_event")

_ACTS = {
    lib.COLL_ACT_SEND: "send",
    lib.COLL_ACT_RECEIVE: "receive",
    lib.COLL_ACT_FOLD: "fold",
    lib.COLL_ACT_COPY: "copy",
    lib.COLL_ACT_ENTER: "enter",
    lib.COLL_ACT_LEAVE: "leave",
}
_MESSAGES = {
    lib.COLL_TRACE_SEND: "send",
    lib.COLL_TRACE_RECV: "recv",
    lib.COLL_TRACE_SENDRECV: "sendrecv",
    lib.COLL_TRACE_PROBE: "probe",
    lib.COLL_TRACE_WAITED: "wait",
    lib.COLL_TRACE_ISEND: "isend",
    lib.COLL_TRACE_IRECV: "irecv",
}
_PART_OF = {
    lib.COLL_TRACE_SPARSE_ALLREDUCE: "sparse allreduce",
    lib.COLL_TRACE_SPARSE_REDUCE_SCATTER: "sparse reduce_scatter",
    lib.COLL_TRACE_SPARSE_ALLGATHER: "sparse allgather",
    lib.COLL_TRACE_SPARSE_BROADCAST: "sparse broadcast",
    lib.COLL_TRACE_SPARSE_PLAN: "sparse_plan",
    lib.COLL_TRACE_SPARSE_PLAN_REDUCE: "plan.reduce",
    lib.COLL_TRACE_ADASUM: "adasum",
}
_UNTOLD = 1 << 62  # bytes of a message of any length
_CATEGORIES = {
    lib.COLL_TRACE_OPERATION: "operation",
    lib.COLL_TRACE_MESSAGE: "message",
    lib.COLL_TRACE_STEP: "step",
    lib.COLL_TRACE_WAIT: "wait",
}
_OPS = {code: name for name, code in OPS.items()}
_REDUCING = ("allreduce", "reduce_scatter", "reduce", "scan", "exscan")
_GREY = "grey"  # of waits, in Chrome's viewer

Part = dict[str, Any]


def host() -> str:
    """Return the name of this machine."""
    return socket.gethostname() or "localhost"


def packed(parts: Sequence[Part]) -> bytes:
    """Return the parts of a rank as bytes: a line of JSON, then the events of all."""
    heads = [
        {key: value for key, value in part.items() if key != "events"} | {"n": len(part["events"])}
        for part in parts
    ]
    return json.dumps(heads).encode() + b"\n" + b"".join(p["events"].tobytes() for p in parts)


def unpacked(words: bytes) -> list[Part]:
    """Return what was packed."""
    line, _, rest = words.partition(b"\n")
    events, parts, at = np.frombuffer(rest, EVENT), [], 0
    for head in json.loads(line):
        n = head.pop("n")
        names = {int(number): name for number, name in head["algorithms"].items()}
        parts.append(head | {"algorithms": names, "events": events[at : at + n]})
        at += n
    return parts


def write(path: Path, made: dict[str, Any]) -> None:
    """Write a document as JSON, an event a line; where that fails, leave what was there."""
    head = {key: value for key, value in made.items() if key != "traceEvents"}
    lines = ",\n".join(json.dumps(event) for event in made["traceEvents"])
    words = json.dumps(head, indent=1)[:-2]
    write_whole(path, f'{words},\n "traceEvents": [\n{lines}\n]}}\n')


def document(
    told: Sequence[Mapping[str, Any]],
    by_rank: Mapping[int, Sequence[Part]],
    clocks: Sequence[Sequence[Offset]],
) -> dict[str, Any]:
    """Return the file of these ranks; ``told`` and ``clocks`` are of all."""
    alone = len(told) == 1  # its communicators may be those of threads, each a rank
    rows: dict[int, list[tuple[Part, Sequence[Offset]]]] = {}
    for rank, parts in by_rank.items():
        own = [offsets[rank] for offsets in clocks]
        for part in parts:
            if len(part["events"]) or part["dropped"]:
                rows.setdefault(part["rank"] if alone else rank, []).append((part, own))
    firsts = [_shifted(p["events"]["begin"], own) for row in rows.values() for p, own in row]
    zero = min((int(first.min()) for first in firsts if len(first)), default=0)
    events: list[dict[str, Any]] = []
    for pid, row in sorted(rows.items()):
        where = told[0 if alone else pid]
        name = f"rank {pid} ({where['host']}, process {where['pid']})"
        events += [_named("process_name", pid, 0, name), _sorted("process", pid, 0, pid)]
        tracks: dict[tuple[str, str], int] = {}
        for part, offsets_of in sorted(row, key=lambda one: one[0]["number"]):
            events += _events(part, pid, offsets_of, zero, tracks)
        for tid, (label, lane) in enumerate(tracks):
            events += [
                _named("thread_name", pid, tid, f"{label}{lane}"),
                _sorted("thread", pid, tid, tid),
            ]
    return {
        "displayTimeUnit": "ns",
        "otherData": _other(told, rows, clocks),
        "traceEvents": events,
    }


def _other(
    told: Sequence[Mapping[str, Any]],
    rows: Mapping[int, Sequence[tuple[Part, Sequence[Offset]]]],
    clocks: Sequence[Sequence[Offset]],
) -> dict[str, Any]:
    dropped = {pid: sum(part["dropped"] for part, _ in row) for pid, row in rows.items()}
    said = {f"rank {pid}": number for pid, number in dropped.items() if number}
    return {
        "made by": f"pycollectives {text(lib.coll_version())}",
        "ranks": len(told),
        "dropped events": said or 0,
        "clock": "CLOCK_MONOTONIC of rank 0",
        "clock offsets": {
            f"rank {rank}": {
                "nanoseconds": [offsets[rank].add for offsets in clocks],
                "uncertainty": max(offsets[rank].uncertainty for offsets in clocks),
            }
            for rank in range(len(told))
            if told[rank]["clock"] != told[0]["clock"]
        },
    }


def _shifted(times: Any, own: Sequence[Offset]) -> Any:
    """Return times of a rank's clock on that of rank 0; between two offsets it drifts evenly."""
    first, last = own[0], own[-1]
    drift = (last.add - first.add) / (last.at - first.at) if last.at > first.at else 0.0
    return times + first.add + np.round((times - first.at) * drift).astype(np.int64)


def _events(
    part: Part, pid: int, own: Sequence[Offset], zero: int, tracks: dict[tuple[str, str], int]
) -> Iterator[dict[str, Any]]:
    begins = _shifted(part["events"]["begin"], own) - zero
    ends = _shifted(part["events"]["end"], own) - zero
    label = (
        f"communicator {part['number']}: rank {part['rank']} of {part['size']}, {part['transport']}"
    )
    wired = part["transport"] != "memory"
    for event, begin, end in zip(part["events"].tolist(), begins, ends, strict=True):
        seen = dict(zip(EVENT.names or (), event, strict=True))
        lane = _lane(seen) if wired else ""
        tid = tracks.setdefault((label, lane), len(tracks))
        made = {
            "name": _name(seen),
            "cat": _CATEGORIES[seen["what"]],
            "ph": "X",
            "ts": int(begin) / 1000,
            "dur": int(end - begin) / 1000,
            "pid": pid,
            "tid": tid,
            "args": _args(seen, part),
        }
        yield made | ({"cname": _GREY} if seen["what"] == lib.COLL_TRACE_WAIT else {})


def _lane(seen: Mapping[str, int]) -> str:
    """Return which of the things that go on beside each other an event belongs to."""
    if seen["what"] == lib.COLL_TRACE_WAIT:
        return " waits"
    if seen["what"] != lib.COLL_TRACE_STEP or seen["act"] in (
        lib.COLL_ACT_ENTER,
        lib.COLL_ACT_LEAVE,
    ):
        return ""
    if seen["act"] == lib.COLL_ACT_SEND:
        return f" to {seen['peer']}"
    return f" from {seen['peer']}" if seen["act"] == lib.COLL_ACT_RECEIVE else " folds"


def _kind(seen: Mapping[str, int]) -> str:
    return KIND_NAMES[seen["kind"]] + ("v" if seen["parts"] else "")


def _name(seen: Mapping[str, int]) -> str:
    what, peer = seen["what"], seen["peer"]
    if what == lib.COLL_TRACE_OPERATION:
        if seen["purpose"] in _PART_OF:
            return _PART_OF[seen["purpose"]]
        return _kind(seen) + (" of a new group" if seen["purpose"] else "")
    if what == lib.COLL_TRACE_MESSAGE:
        return _MESSAGES[seen["kind"]]
    if what == lib.COLL_TRACE_WAIT:
        return "wait" if peer < 0 else f"wait for {peer}"
    act = _ACTS[seen["act"]]
    if peer < 0:
        return act
    return f"{act} {'to' if act == 'send' else 'from'} {peer}"


def _args(seen: Mapping[str, int], part: Part) -> dict[str, Any]:
    what = seen["what"]
    args: dict[str, Any] = {"call": seen["call"]}
    if what == lib.COLL_TRACE_WAIT:
        return args | {"peer": seen["peer"]}
    if seen["bytes"] < _UNTOLD:
        args["bytes"] = seen["bytes"]
    if what == lib.COLL_TRACE_STEP:
        return args | {key: seen[key] for key in ("round", "tile", "peer", "peers")}
    if what == lib.COLL_TRACE_MESSAGE or _kind(seen) != "barrier":
        args["dtype"] = DTYPE_NAMES[seen["dtype"]]
    if seen["failed"]:
        args["failed"] = True
    if what == lib.COLL_TRACE_MESSAGE:
        return args | ({"peer": seen["peer"]} if seen["peer"] >= 0 else {})
    if KIND_NAMES[seen["kind"]] in _REDUCING:
        args["op"] = _OPS.get(seen["op"], "an operation of the program")
    if seen["peer"] >= 0:
        args["root"] = seen["peer"]
    algorithm = part["algorithms"].get(seen["algorithm"], "")
    return args | {"algorithm": algorithm, "mode": MODE_NAMES[seen["mode"]]}


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _sorted(what: str, pid: int, tid: int, place: int) -> dict[str, Any]:
    return {
        "ph": "M",
        "name": f"{what}_sort_index",
        "pid": pid,
        "tid": tid,
        "args": {"sort_index": place},
    }
