# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_gpu_arrays.py runs on the emulated GPU: its functions, by name."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np

import collectives as cl
from collectives import gpu_memory
from collectives.gpu_streams import handle_of
from tests.gpu_program import RANKS, GpuArray, on_all, refused

COUNTS = [2, 0, 700]


def parts() -> None:
    def work(comm: cl.Communicator) -> None:
        rank = comm.rank
        rows = np.arange(2 * COUNTS[rank], dtype="f4").reshape(COUNTS[rank], 2) + rank
        # On GPU 1: a rank without a row has memory there, too.
        part, whole = GpuArray(rows, 1), GpuArray(np.zeros((702, 2), "f4"), 1)
        assert comm.allgatherv(part, COUNTS, whole) is whole
        assert whole.seen[2].tolist() == [2, 3]
        whole.seen[...] = 0
        comm.allgatherv(part, out=whole)
        assert whole.seen[701].tolist() == [1400, 1401]
        assert comm.gatherv(part, COUNTS, whole, root=1) is (whole if rank == 1 else None)
        comm.reduce_scatterv(whole, COUNTS, part)
        assert (part.seen == RANKS * rows).all()
        part.seen[...] = 0
        comm.scatterv(whole if rank == 2 else None, COUNTS, part, root=2)
        assert (part.seen == rows).all()

    on_all(work)


def blocks() -> None:
    def work(comm: cl.Communicator) -> None:
        rank = comm.rank
        sent = [rank + r for r in range(RANKS)]
        x = GpuArray(np.full(sum(sent), rank, "i4"))
        out = GpuArray(np.full(sum(sent), -1, "i4"))
        came = [r for r in range(RANKS) for _ in range(rank + r)]
        comm.alltoallv(x, sent, out=out)
        assert out.seen.tolist() == came
        out.seen[...] = -1
        comm.alltoallv(x, [[s + r for r in range(RANKS)] for s in range(RANKS)], sent, out)
        assert out.seen.tolist() == came
        refused(
            lambda: comm.alltoallv(x, sent, out=GpuArray(np.zeros(40, "i4"))),
            cl.MismatchError,
            "has 40 rows",
        )
        refused(lambda: comm.alltoallv(x, sent), cl.InvalidArgumentError, "pass out=")

    on_all(work)


def exscan() -> None:
    def work(comm: cl.Communicator) -> None:
        x = GpuArray(np.full(5, 2.0 + comm.rank))
        assert comm.exscan(x) is x
        assert (x.seen == [2, 2, 5][comm.rank]).all()

    on_all(work)


def reproducible() -> None:
    def work(comm: cl.Communicator) -> None:
        host = 1 / (np.arange(3000, dtype="f4") + 3 + comm.rank)
        for dtype in ("f4", "f2"):
            x, same = GpuArray(host.astype(dtype)), host.astype(dtype)
            comm.allreduce(x, reproducible=True)
            comm.allreduce(same, reproducible=True)
            assert x.seen.tobytes() == same.tobytes()
        refused(
            lambda: comm.allreduce(x, reproducible="any_p"),
            cl.UnsupportedError,
            "for any number of ranks",
        )

    on_all(work)


def accumulate() -> None:
    def work(comm: cl.Communicator) -> None:
        # 2048 is the last whole number that has a neighbour in float16.
        first = [2048, 1, 1][comm.rank]
        x, named = GpuArray(np.full(900, first, "f2")), GpuArray(np.full(900, first, "f2"))
        comm.allreduce(x, accumulate="float32")
        assert (x.seen == 2050).all()
        comm.allreduce(named, algorithm="ring")
        assert (named.seen == 2048).any()
        ring = partial(comm.allreduce, named, algorithm="ring")
        for call in (partial(ring, accumulate="float32"), partial(ring, reproducible=True)):
            refused(call, cl.UnsupportedError, "ring rounds sums of float16 on their way")
        wide = GpuArray(np.ones(3, "f4"))
        refused(
            lambda: comm.allreduce(wide, accumulate="float64"),
            cl.UnsupportedError,
            "accumulate= is there of float32",
        )
        comm.allreduce(wide, accumulate="float32")
        assert (wide.seen == RANKS).all()

    on_all(work)


def persistent() -> None:
    def work(comm: cl.Communicator) -> None:
        x, out = GpuArray(np.zeros(900, "f4")), GpuArray(np.zeros(900, "f4"))
        call = comm.persistent.allreduce(x, out)
        gathered = GpuArray(np.zeros(702 * 2, "f4"))
        part = GpuArray(np.full(COUNTS[comm.rank] * 2, comm.rank, "f4"))
        gather = comm.persistent.allgatherv(part, [2 * n for n in COUNTS], gathered)
        for i in range(3):
            x.seen[...] = comm.rank + i
            x.stream = 5 + i
            assert call() is out
            assert (out.seen == RANKS * i + 3).all()
            gather.start()
            assert gather.wait() is gathered
            assert gathered.seen[0] == 0
            assert gathered.seen[-1] == 2
            comm.allreduce(x)
        call.free()
        refused(call, cl.InvalidArgumentError, "was freed")
        assert "freed" in repr(call)
        comm.barrier()
        comm.close()
        refused(gather, cl.ClosedError, "closed")

    on_all(work)


def graphs() -> None:
    emulated = ctypes.CDLL(os.environ["COLLECTIVES_CUDA_LIBRARY"])
    emulated.emulated_end_capture.restype = ctypes.c_uint64
    emulated.emulated_replay.argtypes = (ctypes.c_uint64, ctypes.c_void_p)

    def work(comm: cl.Communicator) -> None:
        x = GpuArray(np.full(4000, comm.rank + 1, "f4"))
        call = comm.persistent.allreduce(x)
        other = GpuArray(np.zeros(123, "f4"))
        x.stream = other.stream = 77
        comm.barrier()
        if comm.rank == 0:
            emulated.emulated_begin_capture(ctypes.c_void_p(77))
        comm.barrier()
        call()
        refused(lambda: comm.allreduce(other), cl.UnsupportedError, "being captured into a graph")
        comm.barrier()
        assert (x.seen == comm.rank + 1).all()
        comm.barrier()  # all have looked
        if comm.rank == 0:
            graph = emulated.emulated_end_capture(ctypes.c_void_p(77))
            for _ in range(2):
                assert emulated.emulated_replay(graph, ctypes.c_void_p(78)) == 0
        comm.barrier()
        assert (x.seen == 6 * RANKS).all()
        comm.allreduce(other)

    on_all(work)


def streams() -> None:
    class Stream:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 31)

    def work(comm: cl.Communicator) -> None:
        # Ranks, and the arrays of a call, are on streams of their own: the emulated GPU refuses a
        # launch that might run beside the one before it.
        x, out = GpuArray(np.ones(50, "f4")), GpuArray(np.ones(50, "f4"))
        for i in range(4):
            x.stream, out.stream = 10 + 10 * i + comm.rank, 20 + comm.rank
            comm.allreduce(x, out)
            with cl.on_stream([Stream(), 31, None, 7][i]):
                comm.allreduce(x, out)
        assert (out.seen == RANKS).all()

    on_all(work)

    class Torchs:
        cuda_stream = 0

    class CuPys:
        ptr = 9

    assert [handle_of(s) for s in (None, 0, 5, Stream(), Torchs(), CuPys())] == [1, 1, 5, 31, 1, 9]
    for wrong in ("s", -1, 1.5, object()):
        refused(partial(handle_of, wrong), cl.InvalidArgumentError, "stream is ")


def structures() -> None:
    def work(comm: cl.Communicator) -> None:
        x, y = GpuArray(np.full(5, comm.rank, "f4")), GpuArray(np.full(70, comm.rank, "f8"))
        host = np.full(3, 1.0)
        tree = comm.allreduce({"x": x, "more": [y, host]})
        assert tree["x"] is x
        assert (x.seen == 3).all()
        assert (y.seen == 3).all()
        assert (host == RANKS).all()
        y.seen[...] = comm.rank
        assert comm.broadcast([x, y], 1)[1] is y
        assert (y.seen == 1).all()
        refused(lambda: comm.allreduce([x, y, x]), cl.InvalidArgumentError, "shares memory")
        refused(
            lambda: comm.allreduce(x, op="adasum"),
            cl.UnsupportedError,
            "x is in memory of a GPU, which this call does not",
        )

    on_all(work)


def messages() -> None:
    def work(comm: cl.Communicator) -> None:
        right, left = (comm.rank + 1) % RANKS, (comm.rank - 1) % RANKS
        x, into = GpuArray(np.full(700, comm.rank, "f4")), GpuArray(np.full(800, 9.0, "f4"))
        status = cl.Status()
        assert comm.sendrecv(x, right, into, left, status=status) is into
        assert (status.count, status.dtype) == (700, "float32")
        assert (into.seen[:700] == left).all()
        assert (into.seen[700:] == 9).all()
        # What is sent may change at once; one end may be of the host.
        request = comm.isend(x, right, 5)
        x.seen[...] = -1
        host = np.zeros(700, "f4")
        assert comm.recv(host, left, 5) is host
        assert (host == left).all()
        request.wait()
        later = comm.irecv(x, left, 6)
        comm.send(host, right, 6)
        assert later.wait() is x
        assert (x.seen == (comm.rank - 2) % RANKS).all()
        small = GpuArray(np.zeros(3, "f4"))
        comm.isend(x, comm.rank, 7)
        refused(lambda: comm.recv(small, comm.rank, 7), cl.InvalidArgumentError, "700")
        assert (small.seen == 0).all()

    on_all(work)


def taken() -> int:
    """Bytes of the emulated GPU's memory that somebody has."""
    emulated = ctypes.CDLL(os.environ["COLLECTIVES_CUDA_LIBRARY"])
    emulated.emulated_taken.restype = ctypes.c_size_t
    return int(emulated.emulated_taken())


def seen(x: Any) -> Any:
    """Look at an array of the emulated GPU."""
    shown = x.__cuda_array_interface__
    memory = (ctypes.c_char * x.nbytes).from_address(shown["data"][0])
    return np.frombuffer(memory, shown["typestr"]).reshape(shown["shape"])


def empty() -> None:
    def work(comm: cl.Communicator) -> None:
        x = comm.empty((3, 2), "float64", device=f"cuda:{comm.rank and 1}")
        assert (x.shape, x.dtype, x.device) == ((3, 2), np.float64, comm.rank and 1)
        assert (seen(x) == 0).all()
        x = comm.empty(6, np.int32, device="cuda")
        seen(x)[...] = comm.rank
        assert comm.is_symmetric(x)
        assert comm.is_symmetric(comm.empty(6, device=2))
        assert type(comm.empty(6, device="cpu")) is np.ndarray
        # New arrays for results, as there are of the host's.
        whole = comm.allgather(x)
        assert type(whole) is cl.DeviceArray
        assert seen(whole).tolist() == [0] * 6 + [1] * 6 + [2] * 6
        assert repr(whole) == "<DeviceArray (18,) int32 on GPU 0>"
        for wrong in ("gpu", "cuda:x", -1, 1.5):
            refused(partial(comm.empty, 3, device=wrong), cl.InvalidArgumentError, "device is ")
        refused(partial(comm.empty, 3, device=3), cl.InvalidArgumentError, "no GPU 3")

    on_all(work)
    gc.collect()
    assert taken() == 0


class Fake:
    """In the place of a framework: it keeps what it is given, as they do of what they take."""

    def __init__(self, held: Any) -> None:
        self.held = held
        self.calls: list[Any] = []

    def view(self, how: Any) -> Fake:
        self.calls.append(how)
        return self


def frameworks() -> None:
    comm = cl.local(1)[0]
    where = SimpleNamespace(Device=lambda: SimpleNamespace(id=1))
    sys.modules["cupy"] = cast("ModuleType", SimpleNamespace(asarray=Fake, cuda=where))
    taken_by_cupy = comm.empty((2, 5), "int16", device="cuda")
    assert taken_by_cupy.held.device == 1
    assert taken_by_cupy.held.shape == (2, 5)
    assert taken() == 20
    del taken_by_cupy, sys.modules["cupy"]
    gc.collect()
    assert taken() == 0
    torch = SimpleNamespace(
        as_tensor=lambda x, device: Fake((x, device)),
        empty=lambda shape, dtype: SimpleNamespace(element_size=lambda: 2),
    )
    tensor = gpu_memory.empty_tensor(torch, (3, 4), "bfloat16", 2)
    held, device = tensor.held
    assert (held.shape, held.dtype, device) == ((24,), np.uint8, "cuda:2")
    assert tensor.calls == ["bfloat16", (3, 4)]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, flush=True)
        globals()[name]()
