# SPDX-License-Identifier: Apache-2.0
"""The collectives as functions, of the default communicator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from collectives.arrays import Array
from collectives.default import default
from collectives.method_docs import documented_as_method
from collectives.names import Accumulate, Reproducible
from collectives.operations import Op
from collectives.sparse.calls import SparseOptions


@documented_as_method
def allreduce(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    accumulate: Accumulate | None = None,
    reproducible: Reproducible = False,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
    **sparse: Unpack[SparseOptions],
) -> Array:
    """:meth:`Communicator.allreduce` of the default communicator."""
    return default().allreduce(
        x,
        out,
        op=op,
        accumulate=accumulate,
        reproducible=reproducible,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
        **sparse,
    )


@documented_as_method
def exact_sum(
    x: Array | Sequence[Array],
    out: Array | None = None,
    *,
    op: str = "sum",
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
) -> Array:
    """:meth:`Communicator.exact_sum` of the default communicator."""
    return default().exact_sum(x, out, op=op, algorithm=algorithm, mode=mode, timeout=timeout)


@documented_as_method
def reduce_scatter(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    accumulate: Accumulate | None = None,
    reproducible: Reproducible = False,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
    **sparse: Unpack[SparseOptions],
) -> Array:
    """:meth:`Communicator.reduce_scatter` of the default communicator."""
    return default().reduce_scatter(
        x,
        out,
        op=op,
        accumulate=accumulate,
        reproducible=reproducible,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
        **sparse,
    )


@documented_as_method
def reduce_scatterv(
    x: Array,
    counts: Sequence[int],
    out: Array | None = None,
    *,
    op: Op = "sum",
    accumulate: Accumulate | None = None,
    reproducible: Reproducible = False,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.reduce_scatterv` of the default communicator."""
    return default().reduce_scatterv(
        x,
        counts,
        out,
        op=op,
        accumulate=accumulate,
        reproducible=reproducible,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


@documented_as_method
def allgather(
    x: Array,
    out: Array | None = None,
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
    **sparse: Unpack[SparseOptions],
) -> Array:
    """:meth:`Communicator.allgather` of the default communicator."""
    return default().allgather(
        x, out, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op, **sparse
    )


@documented_as_method
def allgatherv(
    x: Array,
    counts: Sequence[int] | None = None,
    out: Array | None = None,
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.allgatherv` of the default communicator."""
    return default().allgatherv(
        x, counts, out, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


@documented_as_method
def broadcast(
    x: Array,
    root: int = 0,
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
    **sparse: Unpack[SparseOptions],
) -> Array:
    """:meth:`Communicator.broadcast` of the default communicator."""
    return default().broadcast(
        x, root, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op, **sparse
    )


@documented_as_method
def reduce(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    accumulate: Accumulate | None = None,
    reproducible: Reproducible = False,
    root: int = 0,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array | None:
    """:meth:`Communicator.reduce` of the default communicator."""
    return default().reduce(
        x,
        out,
        op=op,
        accumulate=accumulate,
        reproducible=reproducible,
        root=root,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


@documented_as_method
def gather(
    x: Array,
    out: Array | None = None,
    *,
    root: int = 0,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array | None:
    """:meth:`Communicator.gather` of the default communicator."""
    return default().gather(
        x, out, root=root, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


@documented_as_method
def gatherv(
    x: Array,
    counts: Sequence[int] | None = None,
    out: Array | None = None,
    *,
    root: int = 0,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array | None:
    """:meth:`Communicator.gatherv` of the default communicator."""
    return default().gatherv(
        x,
        counts,
        out,
        root=root,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


@documented_as_method
def scatter(
    x: Array | None,
    out: Array | None = None,
    *,
    root: int = 0,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.scatter` of the default communicator."""
    return default().scatter(
        x, out, root=root, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


@documented_as_method
def scatterv(
    x: Array | None,
    counts: Sequence[int],
    out: Array | None = None,
    *,
    root: int = 0,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.scatterv` of the default communicator."""
    return default().scatterv(
        x,
        counts,
        out,
        root=root,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


@documented_as_method
def alltoall(
    x: Array,
    out: Array | None = None,
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.alltoall` of the default communicator."""
    return default().alltoall(
        x, out, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


@documented_as_method
def alltoallv(
    x: Array,
    send_counts: Sequence[int] | Sequence[Sequence[int]],
    recv_counts: Sequence[int] | None = None,
    out: Array | None = None,
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.alltoallv` of the default communicator."""
    return default().alltoallv(
        x,
        send_counts,
        recv_counts,
        out,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


@documented_as_method
def scan(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    accumulate: Accumulate | None = None,
    reproducible: Reproducible = False,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.scan` of the default communicator."""
    return default().scan(
        x,
        out,
        op=op,
        accumulate=accumulate,
        reproducible=reproducible,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


@documented_as_method
def exscan(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    accumulate: Accumulate | None = None,
    reproducible: Reproducible = False,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.exscan` of the default communicator."""
    return default().exscan(
        x,
        out,
        op=op,
        accumulate=accumulate,
        reproducible=reproducible,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


@documented_as_method
def barrier(
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.barrier` of the default communicator."""
    return default().barrier(algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op)
