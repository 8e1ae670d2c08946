# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_nccl_choice` do: NCCL as a candidate, without a GPU.

GPUs are emulated, each rank sees its own as the first; this package's libnccl.so.2 stands in for
NVIDIA's, and what a driver would tell is made up.
"""

from __future__ import annotations

import os
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

import collectives as cl
from collectives import nccl
from collectives.errors import CollectiveError, UnsupportedError
from collectives.nccl import find
from collectives.nccl.library import Library
from collectives.preloading import nccl_library
from collectives.rivals import joined, rival, standing, trial
from tests.processes.gpu import differing, on, seen

N = 1000


def begin() -> tuple[cl.Communicator, int]:
    """Return a communicator of ranks that have a GPU each, and what looks like NCCL."""
    rank = int(os.environ["COLLECTIVES_RANK"])
    os.environ["EMULATED_FIRST_GPU"] = str(rank)
    patch(standing, "uuid_of", lambda device: bytes([rank + 10 * device]) * 16)
    patch(joined, "_MEETING_S", 2.0)
    nccl.load(str(nccl_library()), host_arrays=False)
    return cl.init(timeout=30), rank


def patch(where: Any, name: str, value: Any) -> None:
    """Put something in the place of what a module has; the process ends soon."""
    setattr(where, name, value)


def times(ours: float, nccl: float, mixed: float = 9.0) -> None:
    """Let trials of this rank take so many seconds for a call."""
    real = trial._sample

    def sample(comm: Any, place: Any, run: Any, way: str, sides: Any, words: str) -> float:
        real(comm, place, run, way, sides, words)
        return {"ours": ours, "nccl": nccl, "mixed": mixed}[way]

    patch(trial, "_sample", sample)


def way(comm: cl.Communicator) -> str:
    """Return which way the last call went."""
    last = comm.last
    assert last is not None
    return last.way


def sums(comm: cl.Communicator, **options: Any) -> list[str]:
    """Check an allreduce."""
    x = on(np.arange(N, dtype="f4") + comm.rank)
    comm.allreduce(x, **options)
    p = comm.size
    return differing(seen(x), np.arange(N, dtype="f4") * p + p * (p - 1) / 2, f"sum {options}")


def chosen() -> dict[str, Any]:
    """NCCL is faster: all kinds that it has go by it from the first call on, with right results."""
    comm, rank = begin()
    p = comm.size
    times(2e-3, 1e-3)
    before = comm.explain("allreduce", 4 * N, device="cuda")
    wrong = sums(comm)
    ways = {"allreduce": way(comm)}
    x, whole = on(np.full(3, rank, "i4")), on(np.arange(3 * p, dtype="i4") + rank)
    out = on(np.zeros(3 * p, "i4"))
    rows = np.array([np.arange(3 * p) + r for r in range(p)])
    calls: list[tuple[str, Callable[[], Any], Any, Any]] = [
        ("allgather", lambda: comm.allgather(x, out), out, np.repeat(np.arange(p), 3)),
        (
            "alltoall",
            lambda: comm.alltoall(whole, out),
            out,
            rows.reshape(p, p, 3)[:, rank].ravel(),
        ),
        (
            "reduce_scatter",
            lambda: comm.reduce_scatter(whole, x),
            x,
            rows.sum(0).reshape(p, 3)[rank],
        ),
        ("broadcast", lambda: comm.broadcast(x, root=1), x, rows.sum(0).reshape(p, 3)[1]),
        ("reduce", lambda: comm.reduce(whole, root=1), whole, rows.sum(0 if rank == 1 else ())),
    ]
    for name, call, result, expected in calls:
        call()
        ways[name] = way(comm)
        full = rows[rank] if name == "reduce" and rank != 1 else expected
        wrong += differing(seen(result), full, name)
    comm.allreduce(on(np.ones(N, "c8")))  # which NCCL has not
    ways["complex"] = way(comm)
    text = str(comm.explain("allreduce", 4 * N, device="cuda"))
    comm.close()
    return {"wrong": wrong, "ways": ways, "before": str(before), "text": text}


def differently() -> dict[str, Any]:
    """Ranks see other times: the slowest of each call counts, on all."""
    comm, rank = begin()
    times(2e-3, 1e-3 if rank else 3e-3)
    wrong = sums(comm)
    slow = comm.explain("allreduce", 4 * N, device="cuda")
    times(4e-3 if rank else 1e-3, 2e-3)
    x = on(np.full(3, rank, "i4"))
    comm.broadcast(x)
    fast = comm.explain("broadcast", 12, device="cuda", dtype="int32")
    return {"wrong": wrong, "choices": [slow.choice, fast.choice], "text": str(slow)}


def wanted() -> dict[str, Any]:
    """It is asked for by name; what it cannot do is refused on all ranks, and nothing is lost."""
    comm, rank = begin()
    wrong = sums(comm, algorithm="nccl")
    ways = [way(comm)]
    wrong += sums(comm, algorithm="nccl", async_op=False, timeout=20.0)
    x = on(np.full(3, rank, "f4"))
    said = [
        refusal(call)
        for call in (
            lambda: comm.allreduce(np.ones(3), algorithm="nccl"),
            lambda: comm.allreduce(x, op="max", algorithm="nccl"),
            lambda: comm.allreduce(x, algorithm="nccl", reproducible=True),
            lambda: comm.alltoall(on(np.zeros(comm.size, "f4")), algorithm="nccl"),
            lambda: comm.persistent.allreduce(x, algorithm="nccl"),
            lambda: comm.scan(x, algorithm="nccl"),
        )
    ]
    with comm.group():
        comm.allreduce(x, algorithm="nccl")
    wrong += differing(seen(x), np.full(3, comm.size * (comm.size - 1) / 2), "group")
    handle = comm.allreduce(x, algorithm="nccl", async_op=True)
    handle.wait()
    ways.append(way(comm))
    comm.close()
    return {"wrong": wrong, "ways": ways, "said": said}


def refusal(call: Callable[[], Any]) -> str:
    """Return why a call is refused."""
    try:
        call()
    except CollectiveError as error:
        return str(error)
    return "not refused"


def by_variable() -> dict[str, Any]:
    """COLLECTIVES_ALGORITHM names NCCL for one kind, and ours for another."""
    comm, rank = begin()
    wrong = sums(comm)
    ways = [way(comm)]
    comm.broadcast(on(np.full(3, rank, "i4")))
    ways.append(way(comm))
    comm.allreduce(np.ones(3))
    with comm.force(allreduce="ring"):
        wrong += sums(comm)
        ways.append(way(comm))
        text = str(comm.explain("allreduce", device="cuda"))
    texts = [text, *(str(comm.explain(k, device="cuda")) for k in ("allreduce", "broadcast"))]
    return {"wrong": wrong, "ways": ways, "texts": texts}


def by_force() -> dict[str, Any]:
    """A block wishes for NCCL, without a trial; calls of the host, and blocks inside, go on."""
    comm, rank = begin()
    patch(trial, "_sample", raising("no trial is held"))
    wrong: list[str] = []
    ways, texts = [], []
    with comm.force(allreduce="nccl", reduce="nccl"):
        wrong += sums(comm)
        ways.append(way(comm))
        texts.append(str(comm.explain("allreduce", device="cuda")))
        x = comm.allreduce(np.full(3, float(rank)))
        wrong += differing(x, np.full(3, sum(range(comm.size))), "allreduce of the host")
        with comm.force(allreduce="ring"):
            wrong += sums(comm)
            ways.append(way(comm))
        texts.append(comm.explain("allreduce", 8).source)
    said = [
        refusal(lambda: comm.force(scan="nccl").__enter__()),
        refusal(lambda: comm.force(alltoall="mixed").__enter__()),
    ]
    return {"wrong": wrong, "ways": ways, "texts": texts, "said": said}


def raising(words: str) -> Callable[..., Any]:
    """Return a function that cannot do it."""

    def function(*_: Any, **__: Any) -> Any:
        raise UnsupportedError(words)

    return function


def _fail_allreduce(error: Exception) -> None:
    """Let NCCL's allreduce fail on this rank."""
    finish = nccl.Communicator.finish

    def failing(self: Any, function: str, *arguments: Any, kept: Any = ()) -> None:
        if function == "ncclAllReduce":
            raise error
        finish(self, function, *arguments, kept=kept)

    patch(nccl.Communicator, "finish", failing)


# What lets a step fail on this rank.
FAIL: dict[str, Callable[[], Any]] = {
    "off": lambda: os.environ.update({find.VARIABLE: find.OFF}),
    "absent": lambda: patch(standing, "load", raising("there is no libnccl here")),
    "driver": lambda: patch(standing, "uuid_of", raising("there is no driver of CUDA")),
    "shared": lambda: patch(standing, "uuid_of", lambda _: bytes(16)),
    "version": lambda: patch(standing, "load", lambda: _old(nccl.load())),
    "ours": lambda: patch(nccl.load(), "host_arrays", True),
    "id": lambda: patch(joined, "unique_id", raising("no id")),
    "init": lambda: patch(joined, "init_rank", raising("no communicator")),
    "device": lambda: patch(nccl.Communicator, "device", 7),
    "trial": lambda: _fail_allreduce(UnsupportedError("no call")),
    "memory": lambda: patch(trial, "_scratch", raising("no memory")),
}


def _old(library: Library) -> Library:
    library.version = library.version._replace(minor=27)
    return library


def failing(step: str, ranks: str) -> dict[str, Any]:
    """One step fails on some ranks: all go on without NCCL, with right results."""
    comm, rank = begin()
    if str(rank) in ranks:
        FAIL[step]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrong = sums(comm) + sums(comm)
    said = [str(one.message) for one in caught]
    wanted = refusal(lambda: sums(comm, algorithm="nccl"))
    wrong += sums(comm)
    explained = comm.explain("allreduce", 4 * N, device="cuda")
    comm.close()
    return {"wrong": wrong, "said": said, "why": explained.why, "wanted": wanted,
            "choice": explained.choice}  # fmt: skip


def sharing() -> dict[str, Any]:
    """Ranks share a GPU, as NCCL 2.30 can, and all let each other."""
    os.environ[standing.SHARING] = "1"
    comm, _ = begin()
    patch(standing, "uuid_of", lambda _: bytes(16))
    given = []
    real = nccl.init_rank

    def noted(*arguments: Any, **options: Any) -> Any:
        given.append(options["config"].max_ctas)
        return real(*arguments, **options)

    patch(joined, "init_rank", noted)
    return {"wrong": sums(comm, algorithm="nccl"), "way": way(comm), "blocks": given}


def mismatch(algorithm: str) -> str:
    """Ranks pass other lengths: NCCL would hang."""
    comm, rank = begin()
    times(1e-3, 2e-3)
    sums(comm)
    try:
        comm.allreduce(on(np.ones(N + rank, "f4")), algorithm=algorithm or None)
    except cl.MismatchError as error:
        return str(error)
    return "nothing"


def breaking() -> list[str]:
    """NCCL fails in a call of the program on one rank: all are told."""
    comm, rank = begin()
    sums(comm, algorithm="nccl")
    if rank == 1:
        _fail_allreduce(nccl.load().error("ncclAllReduce", 2))
    said = []
    for _ in range(2):
        try:
            comm.allreduce(on(np.ones(N, "f4")), algorithm="nccl")
            said.append("done")
        except CollectiveError as error:
            said.append(type(error).__name__)
    comm.close()
    return said


def late() -> list[str]:
    """A rank does not come: the other is told, and NCCL's communicator goes with ours."""
    comm, rank = begin()
    wrong = sums(comm, algorithm="nccl")
    x = on(np.ones(N, "f4"))
    if rank == 0:
        first = refusal(lambda: comm.allreduce(x, algorithm="nccl", timeout=0.5))
        return [*wrong, first, refusal(lambda: comm.allreduce(x))]
    time.sleep(1.5)
    return [*wrong, refusal(comm.barrier), refusal(comm.barrier)]


def lost() -> list[Any]:
    """A communicator that is lost takes NCCL's with it, at once and without a word."""
    comm, _ = begin()
    other = comm.dup()
    wrong: list[Any] = sums(other, algorithm="nccl")
    rival_of, held = other._nccl, weakref.ref(other)
    assert rival_of is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del other
    comm.barrier()
    return [*wrong, held() is None, not rival_of._ways["nccl"].made, len(caught)]


def elsewhere() -> dict[str, Any]:
    """A rank comes with arrays of the other's GPU: that call goes the usual way, on all."""
    comm, rank = begin()
    times(2e-3, 1e-3)
    wrong = sums(comm)
    ways = [way(comm)]
    x = on(np.full(N, rank, "f4"), device=1 if rank == 0 else 0)
    comm.allreduce(x)
    ways.append(way(comm))
    total = comm.size * (comm.size - 1) / 2
    wrong += differing(seen(x), np.full(N, total), "on another GPU")
    wrong += sums(comm)
    return {"wrong": wrong, "ways": [*ways, way(comm)]}


def capturing() -> dict[str, Any]:
    """While a graph is captured nothing is measured or made, and what was decided holds."""
    comm, _ = begin()
    times(2e-3, 1e-3)
    real = trial.is_captured
    patch(rival, "is_captured", lambda place: True)
    wrong = sums(comm)
    ways = [way(comm)]
    why = refusal(lambda: sums(comm, algorithm="nccl"))
    patch(rival, "is_captured", real)
    wrong += sums(comm)
    ways.append(way(comm))
    patch(rival, "is_captured", lambda place: True)
    wrong += sums(comm)
    return {"wrong": wrong, "ways": [*ways, way(comm)], "why": why}


def over() -> list[str]:
    """Time for trials is over: lengths nearby share what was measured."""
    comm, _ = begin()
    times(2e-3, 1e-3)
    sums(comm)
    patch(rival, "BUDGET_S", 0.0)
    told = []
    for dtype in ("f4", "i4"):
        comm.allreduce(on(np.ones(5 * N, dtype)))
        name = np.dtype(dtype).name
        explained = comm.explain("allreduce", 20 * N, device="cuda", dtype=name)
        told.append(f"{explained.choice}: {explained.why}")
    return told
