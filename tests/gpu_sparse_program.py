# SPDX-License-Identifier: Apache-2.0
"""What tests/python/test_gpu_sparse.py runs on the emulated GPU: its functions, by name.

CuPy is not there: what stands in for it has the names that the library uses, over arrays of the
emulated GPU, whose memory NumPy and SciPy can look at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse

import collectives as cl
from collectives._ffi import ffi
from tests.gpu_program import RANKS, GpuArray, on_all, refused


class Array(GpuArray):
    """As CuPy's, as far as it is asked."""

    @property
    def size(self) -> int:
        return int(self.seen.size)

    def __len__(self) -> int:
        return len(self.seen)

    def astype(self, dtype: str) -> Array:
        return Array(self.seen.astype(dtype))

    def reshape(self, shape: tuple[int, ...], order: Any = "C") -> Array:
        return Array(self.seen.reshape(shape, order=order))

    def __mul__(self, other: Any) -> Array:
        return Array(self.seen * getattr(other, "seen", other))

    def __add__(self, other: Any) -> Array:
        return Array(self.seen + getattr(other, "seen", other))

    def __sub__(self, other: Any) -> Array:
        return Array(self.seen - getattr(other, "seen", other))

    def __floordiv__(self, other: Any) -> Array:
        return Array(self.seen // other)


class Matrix:
    """As those of cupyx.scipy.sparse, over one of SciPy's."""

    def __init__(self, host: Any) -> None:
        self.host = host
        self.format, self.shape, self.dtype = host.format, host.shape, host.dtype

    @property
    def data(self) -> Array:
        return Array(self.host.data)

    @property
    def row(self) -> Array:
        return Array(self.host.row)

    @property
    def col(self) -> Array:
        return Array(self.host.col)

    @property
    def indices(self) -> Array:
        return Array(self.host.indices)

    @property
    def indptr(self) -> Array:
        return Array(self.host.indptr)

    @property
    def has_canonical_format(self) -> bool:
        return bool(self.host.has_canonical_format)

    def sum_duplicates(self) -> None:
        self.host.sum_duplicates()

    def copy(self) -> Matrix:
        return Matrix(self.host.copy())

    def tocsr(self) -> Matrix:
        return Matrix(self.host.tocsr())

    def tocoo(self) -> Matrix:
        return Matrix(self.host.tocoo())

    def asformat(self, form: str) -> Matrix:
        return Matrix(self.host.asformat(form))


def _coo_matrix(parts: Any, shape: tuple[int, int]) -> Matrix:
    values, (row, col) = parts
    return Matrix(scipy.sparse.coo_matrix((values.seen, (row.seen, col.seen)), shape=shape))


def stand_in() -> None:
    """Let the library find what it takes for CuPy."""
    cupy, sparse = ModuleType("cupy"), ModuleType("cupyx.scipy.sparse")
    cupy.__dict__.update(ndarray=Array, empty=lambda shape, dtype: Array(np.empty(shape, dtype)))
    sparse.__dict__.update(issparse=lambda x: isinstance(x, Matrix), coo_matrix=_coo_matrix)
    sys.modules.update({"cupy": cupy, "cupyx.scipy.sparse": sparse})


def gradient(rank: int, step: int, n: int, dtype: str) -> Any:
    random = np.random.default_rng(100 * step + rank)
    return random.standard_normal(n).astype(dtype)


def top_k() -> None:
    """The same bits as on the CPU, where ranks' elements do not meet, and what is left, too."""
    ours = {
        (dtype, rank): [gradient(rank, step, 5000, dtype) for step in range(3)]
        for dtype in ("float32", "float64", "float16")
        for rank in range(RANKS)
    }
    kept: dict[Any, Any] = {}

    def work(comm: cl.Communicator) -> None:
        for dtype in ("float32", "float64", "float16"):
            there, here = cl.TopK(0.01), cl.TopK(0.01)
            for x in ours[dtype, comm.rank]:
                on_gpu, on_cpu = GpuArray(x), x.copy()
                assert comm.allreduce(on_gpu, compress=there, op="avg") is on_gpu
                comm.allreduce(on_cpu, compress=here, op="avg")
                error = 1e-2 if dtype == "float16" else 1e-6
                assert np.allclose(on_gpu.seen, on_cpu, rtol=error, atol=0)
                assert (on_gpu.seen != 0).sum() == (on_cpu != 0).sum()
            kept[dtype, comm.rank] = there
            refused(there.state, cl.UnsupportedError, "what is kept is on a GPU")

    on_all(work)
    assert len(kept) == 3 * RANKS


def top_k_mistakes() -> None:
    def work(comm: cl.Communicator) -> None:
        x = GpuArray(np.ones(100, "f4"))
        for topk, words in (
            (cl.TopK(0.1, momentum=0.9), "momentum is not there"),
            (cl.TopK(0.1, of_sum=True), "of_sum is not there"),
            (cl.TopK(0.1, reuse=2), "reuse is not there"),
            (cl.TopK(0.1, feedback=False), "feedback=False is not there"),
        ):
            refused(lambda topk=topk: comm.allreduce(x, compress=topk), cl.UnsupportedError, words)  # type: ignore[misc]
        fp8 = cl.FP8()
        refused(lambda: comm.allreduce(x, compress=fp8), cl.UnsupportedError, "cl.TopK so far")
        topk = cl.TopK(0.1)
        comm.allreduce(x, compress=topk)
        longer = GpuArray(np.ones(200, "f4"))
        refused(lambda: comm.allreduce(longer, compress=topk), cl.InvalidArgumentError, "use one")

    on_all(work)


def a_call_that_fails_leaves_what_is_kept() -> None:
    def work(comm: cl.Communicator) -> None:
        topk = cl.TopK(0.02)
        x = GpuArray(np.arange(100, dtype="f4"))
        op = "sum" if comm.rank else "avg"
        refused(lambda: comm.allreduce(x, compress=topk, op=op), cl.MismatchError, "avg")
        kept = topk._on_gpu
        assert kept is not None
        residual = np.frombuffer(ffi.buffer(kept.selection.residual, 400), np.float32)
        assert not residual.any()
        assert x.seen.tolist() == list(range(100))

    on_all(work)


def vectors() -> None:
    stand_in()

    def work(comm: cl.Communicator) -> None:
        for index, dtype, n in (("i4", "f4", 50_000), ("i8", "f8", 40_000), ("u4", "f2", 100)):
            places = np.arange(comm.rank, n, 7 + comm.rank).astype(index)
            values = (places.astype(int) % 5 - 2).astype(dtype)
            x = cl.Sparse(Array(places), Array(values), n)
            assert x.device == 0
            expected: Any = sum(
                np.bincount(at, weights=at.astype(int) % 5 - 2.0, minlength=n)
                for at in (np.arange(r, n, 7 + r) for r in range(RANKS))
            )
            total = comm.allreduce(x)
            assert isinstance(total, cl.Sparse)
            assert total.indices.seen.dtype == np.dtype(index)
            assert total.indices.seen.tolist() == np.flatnonzero(expected).tolist()
            assert (total.values.seen == expected[total.indices.seen]).all()
            dense = comm.allreduce(x, output="dense", op="avg")
            assert np.allclose(dense.seen, expected / RANKS, rtol=1e-3)

    on_all(work)


def nothing() -> None:
    stand_in()

    def work(comm: cl.Communicator) -> None:
        for n in (0, 10):
            x = cl.Sparse(Array(np.empty(0, "i4")), Array(np.empty(0, "f4")), n)
            if n == 0:
                continue
            total = comm.allreduce(x)
            assert total.nnz == 0

    on_all(work)


def matrices() -> None:
    stand_in()

    def work(comm: cl.Communicator) -> None:
        for form in ("csr", "csc", "coo"):
            hosts = [
                scipy.sparse.random(30, 40, 0.1, form, "f4", np.random.default_rng(r))
                for r in range(RANKS)
            ]
            mine = hosts[comm.rank].copy()
            total = comm.allreduce(Matrix(mine))
            expected: Any = sum(host.toarray() for host in hosts)
            assert total.format == form
            assert np.allclose(total.host.toarray(), expected)
            assert (mine != hosts[comm.rank]).nnz == 0
            dense = comm.allreduce(Matrix(mine), output="dense")
            assert np.allclose(dense.seen, expected)
        twice = scipy.sparse.coo_matrix(([1.0, 2.0, 4.0], ([2, 0, 2], [1, 0, 1])), (3, 3))
        assert comm.allreduce(Matrix(twice)).host.toarray()[2, 1] == 5 * RANKS
        assert twice.nnz == 3

    on_all(work)


def mistakes() -> None:
    stand_in()

    def work(comm: cl.Communicator) -> None:
        places, values = Array(np.array([1, 5], "i4")), Array(np.ones(2, "f4"))
        x = cl.Sparse(places, values, 10)
        no: list[tuple[Callable[[], Any], type[Exception], str]] = [
            (lambda: comm.allreduce(x, op="max"), cl.UnsupportedError, "sum, avg are"),
            (lambda: comm.allreduce(x, algorithm="ring"), cl.UnsupportedError, "algorithm is not"),
            (lambda: comm.allreduce(x, largest=3), cl.UnsupportedError, "largest is not there"),
            (lambda: comm.allgather(x), cl.UnsupportedError, "allreduce only so far"),
            (lambda: comm.allreduce(Matrix(scipy.sparse.eye(3, format="dia"))),
             cl.InvalidArgumentError, "csr, csc and coo are taken"),
            (lambda: comm.allreduce(cl.Sparse(places, Array(np.ones(2, "i4")), 10)),
             cl.UnsupportedError, "is int32 on a GPU"),
            (lambda: comm.allreduce(cl.Sparse(Array(np.array([1, 5], "i2")), values, 10)),
             cl.UnsupportedError, "indices of int16"),
            (lambda: comm.allreduce(cl.Sparse(places, values, 1 << 32)), cl.UnsupportedError,
             "2^31"),
            (lambda: cl.Sparse(places, np.ones(2, "f4"), 10), cl.InvalidArgumentError,
             "memories of two kinds"),
            (x.dense, cl.UnsupportedError, "it is on a GPU"),
        ]  # fmt: skip
        for call, error, words in no:
            refused(call, error, words)
        wrong = cl.Sparse(Array(np.array([5, 1], "i4")), values, 10)
        refused(
            lambda: comm.allreduce(wrong if comm.rank == 1 else x),
            cl.InvalidArgumentError,
            "do not ascend",
        )
        assert comm.allreduce(x).values.seen.tolist() == [RANKS, RANKS]

    on_all(work)


def differing() -> None:
    stand_in()

    def work(comm: cl.Communicator) -> None:
        host = scipy.sparse.eye(4, format="csr" if comm.rank else "csc", dtype="f4")
        refused(lambda: comm.allreduce(Matrix(host)), cl.MismatchError, "csc 4 x 4")

    on_all(work)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
