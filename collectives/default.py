# SPDX-License-Identifier: Apache-2.0
"""The default communicator, and the drop-in functions that use it."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Sequence

from collectives.arrays import Array
from collectives.communicator import Communicator
from collectives.environment import place
from collectives.errors import InvalidArgumentError
from collectives.operations import Op
from collectives.start import join

_default: Communicator | None = None
_making = threading.RLock()


def init(timeout: float | None = None) -> Communicator:
    """Meet the other ranks of this job and return the communicator, from now on the default one.

    The place of this process in its job comes from the environment (see
    :mod:`collectives.environment`), which ``collrun`` sets; without it the process is alone,
    rank 0 of 1. ``timeout`` bounds the meeting and each call, in seconds; None:
    COLLECTIVES_TIMEOUT, else 300.

    All ranks call it, once; after close() they may call it again. Raises InvalidArgumentError for
    an environment that makes no sense or while the default communicator is open, BootstrapError
    or CollectiveTimeoutError when the ranks do not find each other.
    """
    global _default
    with _making:
        if _default is not None and not _default.closed:
            raise InvalidArgumentError(
                "init() was called before in this process, by the program or by the first use of "
                "a function such as collectives.allreduce(): a second call would wait for the "
                "other ranks. Use what the first call returned, or close() it first"
            )
        _default = join(place(), timeout)
        return _default


def default() -> Communicator:
    """Return the default communicator; the first use makes it."""
    if _default is not None:
        return _default
    with _making:
        return _default if _default is not None else init()


def _at_exit() -> None:
    """Leave without waiting; when the program ends by an exception, tell the others which."""
    comm = _default
    if comm is None or comm.closed:
        return
    error = getattr(sys, "last_value", None)
    if error is not None and not hasattr(sys, "ps1"):  # at a prompt, errors are not the end
        comm.abort(f"its program ended by {type(error).__name__}: {error}")
    comm.close()


atexit.register(_at_exit)


def allreduce(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.allreduce` of the default communicator."""
    comm = _default or default()
    return comm.allreduce(
        x, out, op=op, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


def reduce_scatter(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.reduce_scatter` of the default communicator."""
    comm = _default or default()
    return comm.reduce_scatter(
        x, out, op=op, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


def reduce_scatterv(
    x: Array,
    counts: Sequence[int],
    out: Array | None = None,
    *,
    op: Op = "sum",
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.reduce_scatterv` of the default communicator."""
    comm = _default or default()
    return comm.reduce_scatterv(
        x, counts, out, op=op, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


def allgather(
    x: Array,
    out: Array | None = None,
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.allgather` of the default communicator."""
    comm = _default or default()
    return comm.allgather(
        x, out, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


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
    comm = _default or default()
    return comm.allgatherv(
        x, counts, out, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


def broadcast(
    x: Array,
    root: int = 0,
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.broadcast` of the default communicator."""
    comm = _default or default()
    return comm.broadcast(
        x, root, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


def reduce(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    root: int = 0,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array | None:
    """:meth:`Communicator.reduce` of the default communicator."""
    comm = _default or default()
    return comm.reduce(
        x, out, op=op, root=root, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


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
    comm = _default or default()
    return comm.gather(
        x, out, root=root, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


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
    comm = _default or default()
    return comm.gatherv(
        x,
        counts,
        out,
        root=root,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


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
    comm = _default or default()
    return comm.scatter(
        x, out, root=root, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


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
    comm = _default or default()
    return comm.scatterv(
        x,
        counts,
        out,
        root=root,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


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
    comm = _default or default()
    return comm.alltoall(x, out, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op)


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
    comm = _default or default()
    return comm.alltoallv(
        x,
        send_counts,
        recv_counts,
        out,
        algorithm=algorithm,
        mode=mode,
        timeout=timeout,
        async_op=async_op,
    )


def scan(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.scan` of the default communicator."""
    comm = _default or default()
    return comm.scan(
        x, out, op=op, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


def exscan(
    x: Array,
    out: Array | None = None,
    *,
    op: Op = "sum",
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.exscan` of the default communicator."""
    comm = _default or default()
    return comm.exscan(
        x, out, op=op, algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op
    )


def barrier(
    *,
    algorithm: str | None = None,
    mode: str | None = None,
    timeout: float | None = None,
    async_op: bool = False,
) -> Array:
    """:meth:`Communicator.barrier` of the default communicator."""
    comm = _default or default()
    return comm.barrier(algorithm=algorithm, mode=mode, timeout=timeout, async_op=async_op)
