# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_gpu` do: collectives of arrays on the emulated GPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import collectives as cl
from collectives import arrays, gpu_arrays
from collectives._ffi import check, ffi, lib
from tests.gpu_program import GpuArray

LONG = 1_100_000  # float32: two blocks
_place = 0  # the GPU of this rank's arrays


def seen(x: Any) -> Any:
    """Return what there is for whoever comes on the array's stream."""
    given = gpu_arrays.anywhere(x, "x")
    host = np.empty(given.shape, x.dtype)
    address = ffi.cast("void *", host.ctypes.data)
    stream = ffi.cast("void *", given.stream)
    check(lib.coll_gpu_copy(given.device, address, given.pointer, host.nbytes, stream))
    return host


def on(values: Any, stream: int = 1, device: int | None = None) -> GpuArray:
    """Return an array of a GPU whose owner works on a stream of his own."""
    x = GpuArray(values, _place if device is None else device)
    x.stream = stream
    return x


def everything() -> dict[str, list[str]]:
    """Check every call in every way; return what was wrong, by kind of check."""
    comm = cl.init(timeout=30)
    checks = (kinds, dtypes, what_the_host_has, later, structures, results, told, refusals)
    return {check.__name__: check(comm) for check in checks}


def each_its_own() -> dict[str, list[str]]:
    """Check the same where each rank has a GPU of its own."""
    global _place
    comm = cl.init(timeout=30)
    _place = comm.rank
    checks = (kinds, what_the_host_has, later, structures, launched)
    return {check.__name__: check(comm) for check in checks}


def each_sees_its_own() -> dict[str, list[str]]:
    """Check the same where each rank sees its GPU as the first, as by CUDA_VISIBLE_DEVICES."""
    os.environ["EMULATED_FIRST_GPU"] = os.environ["COLLECTIVES_RANK"]
    comm = cl.init(timeout=30)
    return {check.__name__: check(comm) for check in (structures, launched)}


def launched(comm: cl.Communicator) -> list[str]:
    """What ``comm.last`` says of a launch."""
    comm.allreduce(on(np.ones(1000, "f4")))
    last = comm.last
    assert last is not None
    wrong = [] if last.way == "launch" and "in a launch on the GPU" in str(last) else [str(last)]
    wrong += [] if last.reason == "" else [last.reason]
    comm.close()
    return wrong


def differing(found: Any, expected: Any, what: str) -> list[str]:
    """Say what is not as it should be."""
    same = np.array_equal(np.asarray(found), np.asarray(expected))
    return [] if same else [f"{what}: {found!r:.60} for {expected!r:.60}"]


def kinds(comm: cl.Communicator) -> list[str]:
    """Each kind has the results that it has of arrays of the host, whatever streams arrays have."""
    p, rank, wrong = comm.size, comm.rank, []
    counts = [3 * (r % 2) + r for r in range(p)]
    for n in (1, 700, LONG):
        given, full = np.arange(n, dtype="f4") % 97 + rank, np.arange(n * p, dtype="i4") % 89 + rank

        def gatherv(x: Any, out: Any) -> Any:
            return comm.allgatherv(x, out=out)

        calls: list[tuple[str, Any, Any, Callable[[Any, Any], Any]]] = [
            ("allreduce", given, np.zeros(n, "f4"), comm.allreduce),
            ("max", given, np.zeros(n, "f4"), partial(comm.allreduce, op="max")),
            ("scan", given, np.zeros(n, "f4"), comm.scan),
            ("exscan", given, np.zeros(n, "f4"), comm.exscan),
            ("reduce", given, np.zeros(n, "f4"), partial(comm.reduce, root=p - 1)),
            ("allgather", given, np.zeros(n * p, "f4"), comm.allgather),
            ("gather", given, np.zeros(n * p, "f4"), partial(comm.gather, root=1)),
            ("reduce_scatter", full, np.zeros(n, full.dtype), comm.reduce_scatter),
            ("alltoall", full, np.zeros(n * p, full.dtype), comm.alltoall),
            ("allgatherv", given[: counts[rank]], np.zeros(sum(counts), "f4"), gatherv),
        ]
        for name, x, out, call in calls if n > max(counts) else calls[:-1]:
            one, other = on(x, 5), on(out, 7 + rank)
            call(one, other)
            call(x, out)
            wrong += differing(seen(other), out, f"{name} of {n}")
        x = on(given, 9)
        comm.broadcast(x, root=1)
        wrong += differing(seen(x), np.arange(n, dtype="f4") % 97 + 1, f"broadcast of {n}")
    return wrong


def dtypes(comm: cl.Communicator) -> list[str]:
    """All dtypes, in place; each rank may have a GPU of its own."""
    wrong = []
    total = sum(range(comm.size))
    for name in arrays.DTYPES:
        if "_" in name and "float8" not in name:
            continue
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        x = on(np.full(9, comm.rank).astype(dtype), device=comm.rank % 3)
        if comm.allreduce(x) is not x:
            wrong.append(f"{name}: another array")
        wrong += differing(seen(x), np.full(9, total).astype(dtype), name)
    return wrong


def what_the_host_has(comm: cl.Communicator) -> list[str]:
    """Wider sums, exact ones, operations and algorithms of the program, pairs, logical ones."""
    wrong = []
    tenths = np.full(700, 0.1 * (comm.rank + 1), "f4")
    for options in ({"accumulate": "float64"}, {"reproducible": "any_p"}, {"reproducible": True}):
        x, same = on(tenths), tenths.copy()
        comm.allreduce(x, **options)
        comm.allreduce(same, **options)
        wrong += differing(seen(x), same, str(options))
    larger = cl.op(np.maximum, commutative=True)
    x = on(np.full(5, comm.rank, "i8"))
    comm.allreduce(x, op=larger)
    wrong += differing(seen(x), np.full(5, comm.size - 1), "an operation of the program")
    comm.allreduce(x, op="land")
    return wrong + differing(seen(x), np.ones(5), "land")


def later(comm: cl.Communicator) -> list[str]:
    """Calls in flight, persistent ones and those of a group."""
    wrong, p, total = [], comm.size, sum(range(comm.size))
    xs = [on(np.full(n, comm.rank, "f4"), 3 + n) for n in (1, 40, LONG)]
    for handle in [comm.allreduce(x, async_op=True) for x in xs]:
        handle.wait()
    for x in xs:
        wrong += differing(seen(x), np.full(x.seen.shape, total), "async_op")
    with comm.group():
        for x in xs:
            comm.allreduce(x)
    for x in xs:
        wrong += differing(seen(x), np.full(x.seen.shape, total * p), "group")
    call = comm.persistent.allreduce(xs[1])
    for times in (2, 3):
        call()
        wrong += differing(seen(xs[1]), np.full(40, total * p**times), "persistent")
    return wrong


def structures(comm: cl.Communicator) -> list[str]:
    """A structure with arrays of both kinds."""
    x, host = on(np.full(5, comm.rank, "f4")), np.full(3, comm.rank, "f4")
    tree = comm.allreduce({"x": x, "more": [host]})
    total = sum(range(comm.size))
    wrong = [] if tree["x"] is x else ["another array"]
    return wrong + differing(seen(x), [total] * 5, "x") + differing(host, [total] * 3, "host")


def results(comm: cl.Communicator) -> list[str]:
    """Arrays of ours, which results that are new are like."""
    x = comm.empty(4, "int32", device="cuda")
    comm.broadcast(x)
    whole = comm.allgather(x)
    wrong = [] if type(whole) is cl.DeviceArray else [f"{type(whole)}"]
    return wrong + differing(seen(whole), np.zeros(4 * comm.size, "i4"), "allgather")


def told(comm: cl.Communicator) -> list[str]:
    """What ``comm.last`` says."""
    comm.allreduce(on(np.ones(LONG, "f4")), algorithm="ring")
    last = comm.last
    assert last is not None
    wrong = [] if last.way == "host" and last.blocks == 2 else [repr(last)]
    wrong += [] if (last.nbytes, last.algorithm) == (4 * LONG, "ring") else [repr(last)]
    wrong += [] if last.seconds > 0 and 0 <= last.waiting <= 1 else [repr(last)]
    wrong += [] if last.reason == "ranks 0 and 1 share a GPU" else [repr(last)]
    words = f"GPUs through memory of the host in 2 blocks ({last.reason})"
    wrong += [] if words in str(last) else [str(last)]
    comm.allreduce(np.ones(3))
    last = comm.last
    assert last is not None
    return wrong + ([] if last.way == last.reason == "" and "GPU" not in str(last) else [str(last)])


def refusals(comm: cl.Communicator) -> list[str]:
    """What is not there says so, and disturbs nobody."""
    wrong = []
    indices, values = on(np.arange(3, dtype="i4")), on(np.ones(3, "f4"))
    vector = cl.Sparse(indices, values, 10)
    dense = on(np.ones(300, "f4"))
    top = cl.TopK(0.5)
    calls: list[Callable[[], Any]] = [
        lambda: comm.allreduce(vector),
        lambda: comm.allreduce(dense, compress=top),
    ]
    for call in calls:
        try:
            call()
            wrong.append("not refused")
        except cl.UnsupportedError as error:
            wrong += [] if "pass copies in memory of the host" in str(error) else [str(error)]
    comm.allreduce(dense)
    return wrong + differing(seen(dense), np.full(300, comm.size), "after that")


def differently() -> str:
    """One rank passes an array of the host; return what this one is told."""
    comm = cl.init(timeout=30)
    x: Any = on(np.ones(5)) if comm.rank else np.ones(5)
    try:
        comm.allreduce(x)
    except cl.MismatchError as error:
        return str(error)
    return "nothing"
