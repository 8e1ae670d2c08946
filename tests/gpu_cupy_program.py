# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_cupy.py runs on the emulated GPU: its functions, by name.

CuPy is not there: what stands in for its arrays has what the backend asks of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse

import collectives as cl
from collectives.cupy import Backend
from tests.gpu_program import RANKS, GpuArray, on_all, refused
from tests.gpu_sparse_program import Matrix, stand_in


class View:
    """A part of an array, in its memory, as CuPy's slices are."""

    def __init__(self, whole: GpuArray, seen: Any, stream: int = 1) -> None:
        self.whole, self.seen, self.stream = whole, seen, stream
        self.dtype, self.device = seen.dtype, whole.device
        self.size, self.flags = seen.size, seen.flags

    @property
    def T(self) -> View:  # noqa: N802 - its name there
        return View(self.whole, self.seen.T)

    def reshape(self, *shape: int) -> View:
        changed = self.seen.reshape(*shape)
        assert not changed.size or np.shares_memory(changed, self.seen)
        return View(self.whole, changed)

    def __getitem__(self, part: Any) -> View:
        return View(self.whole, self.seen[part])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        shown = dict(self.seen.__array_interface__)
        return {**shown, "strides": None, "stream": self.stream, "version": 3}


def array(values: Any, dtype: str = "f4") -> View:
    """Return an array on the GPU."""
    whole = GpuArray(np.asarray(values, dtype))
    return View(whole, whole.seen)


def each(work: Callable[[Backend], None]) -> None:
    """Run ``work`` on each rank's backend."""
    on_all(lambda comm: work(Backend.of(comm)))


def reductions() -> None:
    def work(backend: Backend) -> None:
        rank, total = backend.rank, RANKS * (RANKS - 1) / 2
        x, out = array(np.arange(6.0).reshape(2, 3) + rank), array(np.zeros((2, 3)))
        backend.all_reduce(x, out)
        assert (out.seen == RANKS * np.arange(6.0).reshape(2, 3) + total).all()
        backend.all_reduce(x, out, op="max", stream=SimpleNamespace(ptr=0))
        assert (out.seen == x.seen - rank + RANKS - 1).all()
        kept = out.seen.copy()
        backend.reduce(x, out if rank == 1 else None, root=1, op="min")
        assert rank == 1 or (out.seen == kept).all()
        assert rank != 1 or (out.seen == np.arange(6.0).reshape(2, 3)).all()
        whole, part = array(np.arange(2 * RANKS + 1.0)), array(np.zeros(3))
        backend.reduce_scatter(whole, part, 2)  # what is behind the parts is left alone
        assert part.seen.tolist() == [RANKS * 2 * rank, RANKS * (2 * rank + 1), 0]

    each(work)


def movements() -> None:
    def work(backend: Backend) -> None:
        rank = backend.rank
        x, rows = array([rank, 10 + rank], "i8"), array(np.zeros((RANKS, 2)), "i8")
        backend.all_gather(x, rows, 2)
        expected = [[r, 10 + r] for r in range(RANKS)]
        assert rows.seen.tolist() == expected
        backend.all_to_all(array(np.full((RANKS, 2), rank), "i8"), rows)
        assert rows.seen.tolist() == [[r, r] for r in range(RANKS)]
        backend.gather(x, rows if rank == 2 else None, root=2)
        assert rank != 2 or rows.seen.tolist() == expected
        backend.scatter(rows if rank == 2 else None, x, root=2)
        assert x.seen.tolist() == expected[rank]
        backend.broadcast(x, root=1)
        assert x.seen.tolist() == expected[1]
        backend.barrier()

    each(work)


def messages() -> None:
    def work(backend: Backend) -> None:
        rank, x, out = backend.rank, array([backend.rank] * 5), array(np.zeros(5))
        if rank == 0:
            backend.send(x, 1)
        elif rank == 1:
            backend.recv(out, 0)
            assert (out.seen == 0).all()
        backend.send_recv(x, out, 1 - rank if rank < 2 else 2)
        assert (out.seen == (1 - rank if rank < 2 else 2)).all()
        if rank == 0:
            backend.send(x[:3], 1)
        elif rank == 1:
            refused(lambda: backend.recv(out, 0), cl.InvalidArgumentError, "has sent 3 elements")

    each(work)


def orders() -> None:
    """Fortran's order is taken as it is, what is strided refused before anything is sent."""

    def work(backend: Backend) -> None:
        x = View(whole := GpuArray(np.arange(6, dtype="f4")), whole.seen.reshape(3, 2).T)
        assert (x.flags.f_contiguous, x.flags.c_contiguous) == (True, False)
        out = View(target := GpuArray(np.zeros(6, "f4")), target.seen.reshape(3, 2).T)
        backend.all_reduce(x, out)
        assert (out.seen == RANKS * x.seen).all()
        strided = array(np.zeros((4, 4)))[:, ::2]
        for call in (
            lambda: backend.all_reduce(strided, out),
            lambda: backend.broadcast(strided),
            lambda: backend.send(strided, 0),
        ):
            refused(call, cl.InvalidArgumentError, "strided memory: pass one that is contiguous")
        few = lambda: backend.all_gather(array([1]), array([1, 2]), 1)  # noqa: E731
        refused(few, cl.InvalidArgumentError, f"out_array has 2 elements, {RANKS} are needed")
        minus = lambda: backend.reduce_scatter(x, out, -1)  # noqa: E731
        refused(minus, cl.InvalidArgumentError, "count is -1")
        refused(lambda: backend.send([1], 0), cl.InvalidArgumentError, "has no flags")

    each(work)


def matrices() -> None:
    stand_in()
    hosts = [scipy.sparse.random(20, 30, 0.1, "csr", "f4", random_state=r) for r in range(RANKS)]
    total = sum(host.toarray() for host in hosts)

    def work(backend: Backend) -> None:
        for form in ("csr", "csc", "coo"):
            x, out = Matrix(hosts[backend.rank].asformat(form)), Result(form, (20, 30))
            backend.all_reduce(x, out)
            assert np.allclose(out.dense(), total, atol=1e-5)
        strange = Result("csr", (30, 20))
        other = lambda: backend.all_reduce(x.tocsr(), strange)  # noqa: E731
        refused(other, cl.InvalidArgumentError, "out_array is no csr matrix of shape (20, 30)")
        refused(lambda: backend.broadcast(x), cl.UnsupportedError, "taken by all_reduce only")

    each(work)


class Result(Matrix):
    """A matrix whose arrays can be set, as those of cupyx can."""

    data: Any = None
    row: Any = None
    col: Any = None
    indices: Any = None
    indptr: Any = None
    has_canonical_format: Any = None

    def __init__(self, form: str, shape: tuple[int, int]) -> None:
        super().__init__(scipy.sparse.coo_matrix(shape, dtype="f4").asformat(form))

    def dense(self) -> Any:
        if self.format == "coo":
            entries = (self.data.seen, (self.row.seen, self.col.seen))
            return scipy.sparse.coo_matrix(entries, self.shape).toarray()
        parts = (self.data.seen, self.indices.seen, self.indptr.seen)
        return getattr(scipy.sparse, f"{self.format}_matrix")(parts, self.shape).toarray()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
