# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_gpu_arrays.py runs on the emulated GPU: its functions, by name."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from collectives._ffi import check, ffi, lib

RANKS = 3


class GpuArray:
    """An array that shows itself as CuPy's do; the emulated GPU's memory can be looked at."""

    def __init__(self, values: Any, device: int = 0) -> None:
        values = np.ascontiguousarray(values)
        place = ffi.new("void **")
        check(lib.coll_gpu_allocate(device, max(values.nbytes, 1), place))
        self._memory = ffi.gc(place[0], lambda memory: lib.coll_gpu_free(device, memory))
        self.strides: tuple[int, ...] | None = None
        self.stream = 1
        self.read_only = False
        self.device = SimpleNamespace(id=device)
        self.dtype = values.dtype
        self.seen = np.frombuffer(
            ffi.buffer(self._memory, max(values.nbytes, 1)), values.dtype, values.size
        ).reshape(values.shape)
        self.seen[...] = values

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        address = int(ffi.cast("uintptr_t", self._memory))
        return {
            "shape": self.seen.shape,
            "typestr": self.seen.dtype.str,
            "data": (address, self.read_only),
            "strides": self.strides,
            "stream": self.stream,
            "version": 3,
        }


def on_all(work: Callable[[cl.Communicator], None], ranks: int = RANKS) -> None:
    """Run ``work`` on each rank, in a thread of its own; raise what the first raised."""
    errors: list[BaseException] = []

    def run(comm: cl.Communicator) -> None:
        try:
            work(comm)
        except BaseException as error:
            errors.append(error)
            comm.abort(str(error))

    threads = [threading.Thread(target=run, args=(comm,)) for comm in cl.local(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    """Check that a call is refused with these words."""
    with pytest.raises(error) as found:
        call()
    assert words in str(found.value), found.value


def devices() -> None:
    found = cl.devices()
    assert len(found) == 3
    assert found.why == ""
    assert found[1].number == 1
    assert found[1].name == "emulated"


def allreduce() -> None:
    def work(comm: cl.Communicator) -> None:
        for n in (0, 1, 1000, 30_000):
            for dtype in ("float32", "float64", "int16", "complex64", "float16"):
                x = GpuArray((np.arange(n) % 50 + comm.rank).astype(dtype))
                assert comm.allreduce(x) is x
                assert (x.seen == np.arange(n) % 50 * RANKS + 3).all()
        for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):  # of which letters say nothing
            x = GpuArray(np.full(5, comm.rank, kind))
            comm.allreduce(x)
            assert (x.seen == 3).all()
        x, out = GpuArray(np.full((2, 3), comm.rank, "f4")), GpuArray(np.zeros((2, 3), "f4"))
        assert comm.allreduce(x, out, op="max", algorithm="ring") is out
        assert (out.seen == RANKS - 1).all()
        assert (x.seen == comm.rank).all()
        handle = comm.allreduce(x, async_op=True)
        assert handle.wait() is x
        assert (x.seen == 3).all()

    on_all(work)


def others() -> None:
    def work(comm: cl.Communicator) -> None:
        rank, size = comm.rank, comm.size
        whole = GpuArray(np.zeros(2 * size, "i4"))
        part = GpuArray(np.array([rank, rank + 10], "i4"))
        comm.allgather(part, whole)
        assert whole.seen.tolist() == [v for r in range(size) for v in (r, r + 10)]
        comm.reduce_scatter(whole, part)
        assert part.seen.tolist() == [rank * size, (rank + 10) * size]
        comm.alltoall(whole)
        assert whole.seen.tolist() == [rank, rank + 10] * size
        comm.broadcast(part, root=1)
        assert part.seen.tolist() == [size, 11 * size]
        total = comm.reduce(part, root=2)
        assert total is (part if rank == 2 else None)
        comm.scan(part, op="max")
        comm.gather(part, whole if rank == 0 else None)
        comm.scatter(whole if rank == 0 else None, part)
        assert part.seen.dtype == np.int32

    on_all(work)


def groups() -> None:
    def work(comm: cl.Communicator) -> None:
        xs = [GpuArray(np.full(n, comm.rank, "f4")) for n in (1, 5, 7000)]
        host = np.full(3, comm.rank, "f4")
        with comm.group():
            for x in xs:
                comm.allreduce(x)
            comm.allreduce(host)
        assert all((x.seen == 3).all() for x in xs)
        assert (host == 3).all()

    on_all(work)


def mistakes() -> None:
    def work(comm: cl.Communicator) -> None:
        x, host = GpuArray(np.zeros(4, "f4")), np.zeros(4, "f4")
        wrong = cl.InvalidArgumentError
        refused(lambda: comm.allreduce(x, host), wrong, "memory of the host, but x of GPU 0")
        refused(lambda: comm.allreduce(host, x), wrong, "memory of GPU 0, but x of the host")
        elsewhere = GpuArray(np.zeros(4, "f4"), 1)
        refused(lambda: comm.allreduce(x, elsewhere), wrong, "memory of GPU 1, but x of GPU 0")
        refused(lambda: comm.allgather(x), wrong, "pass out=")
        x.read_only = True
        root = (comm.rank + 1) % RANKS  # so this rank only receives
        refused(lambda: comm.scatter(None, x, root=root), wrong, "out is read-only")
        x.read_only = False
        x.strides = (8,)
        refused(lambda: comm.allreduce(x), wrong, "strided memory of a GPU")
        x.strides = (4,)
        refused(lambda: comm.allreduce(x, accumulate="float64"), cl.UnsupportedError, "accumulate=")
        comm.allreduce(x)

    on_all(work)


def differing() -> None:
    def work(comm: cl.Communicator) -> None:
        x = GpuArray(np.zeros(4 if comm.rank else 5, "f4"))
        refused(lambda: comm.allreduce(x), cl.MismatchError, "allreduce of 5 float32")

    on_all(work)


def alone() -> None:
    comm = cl.init()
    x = GpuArray(np.arange(5, dtype="f8"))
    comm.allreduce(x)
    assert x.seen.tolist() == [0, 1, 2, 3, 4]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, flush=True)
        globals()[name]()
