# SPDX-License-Identifier: Apache-2.0
"""A backend for cupyx.distributed: ``init_process_group(n, rank, backend="collectives")``.

:func:`register` makes it known there. :class:`Backend` may also be used without it, as
``Backend(n, rank)`` in each process, or ``Backend.of(comm)`` over a communicator that is there
already. CuPy is not imported before :func:`register`. docs/gpu.md.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, Literal

from collectives import environment
from collectives.communicator import Communicator
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.gpu_streams import on_stream
from collectives.names import integer
from collectives.request import Status
from collectives.sparse.on_gpu import of_cupyx
from collectives.start import join

NAME = "collectives"
Op = Literal["sum", "prod", "min", "max"]

_PLACES = (environment.RANK, environment.SIZE, environment.MASTER)


def register() -> None:
    """Let ``cupyx.distributed.init_process_group`` take ``backend="collectives"``.

    Raises UnsupportedError where CuPy is not there, or keeps its backends elsewhere than CuPy 13
    and 14 do.
    """
    try:
        backends = import_module("cupyx.distributed._init")._backends
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(
            f"cupyx.distributed has no table of backends ({error}): use collectives.cupy.Backend"
        ) from error
    backends[NAME] = Backend


class Backend:
    """What cupyx.distributed asks of a backend, over a communicator.

    Arrays are CuPy's (or any others that the communicator takes, NumPy's, too), contiguous in C or
    Fortran order, of all its dtypes; elements are taken in the order of memory. Calls with arrays
    on a GPU are enqueued on ``stream``, or on the current one. ``op`` is one of sum, prod, min and
    max, or another of the communicator's. Sparse matrices of cupyx are taken by all_reduce.

    Errors are the communicator's; InvalidArgumentError for arrays that are strided or too short.

    Attributes:
        communicator: The communicator; it may be used beside the backend.
        rank: This rank.
    """

    def __init__(
        self,
        n_devices: int,
        rank: int,
        host: str = "127.0.0.1",
        port: int = 13333,
        use_mpi: bool = False,
    ) -> None:
        """Meet the other processes: rank 0 is reached at ``host`` and ``port``.

        With ``use_mpi`` they meet through ``mpi4py.MPI.COMM_WORLD``, in which each has its rank.
        On several hosts COLLECTIVES_SECRET_FILE is needed, as without a launcher (SECURITY.md).
        """
        self.communicator = (
            _by_mpi(n_devices, rank) if use_mpi else _by_hand(n_devices, rank, host, port)
        )
        self.rank = self.communicator.rank

    @classmethod
    def of(cls, comm: Communicator) -> Backend:
        """Return a backend over a communicator, which stays the caller's to close."""
        made = cls.__new__(cls)
        made.communicator, made.rank = comm, comm.rank
        return made

    def close(self) -> None:
        """Close the communicator."""
        self.communicator.close()

    def all_reduce(self, in_array: Any, out_array: Any, op: Op = "sum", stream: Any = None) -> None:
        """Reduce ``in_array`` over all ranks into ``out_array`` of each.

        Of sparse matrices (csr, csc, coo; sum) ``out_array`` is one of the same shape, format and
        dtype, and gets the arrays of the sum.
        """
        with _on(stream):
            if of_cupyx(in_array):
                _check_alike(in_array, out_array)
                _fill(out_array, self.communicator.allreduce(in_array, op=op))
                return
            given, target = _flat("all_reduce", in_array), _flat("all_reduce", out_array)
            self.communicator.allreduce(given, target, op=op)

    def reduce(
        self, in_array: Any, out_array: Any, root: int = 0, op: Op = "sum", stream: Any = None
    ) -> None:
        """Reduce ``in_array`` over all ranks into ``out_array`` of rank ``root``."""
        target = _flat("reduce", out_array) if self.rank == root else None
        with _on(stream):
            self.communicator.reduce(_flat("reduce", in_array), target, op=op, root=root)

    def broadcast(self, in_out_array: Any, root: int = 0, stream: Any = None) -> None:
        """Give every rank the array of rank ``root``."""
        with _on(stream):
            self.communicator.broadcast(_flat("broadcast", in_out_array), root)

    def reduce_scatter(
        self, in_array: Any, out_array: Any, count: int, op: Op = "sum", stream: Any = None
    ) -> None:
        """Reduce over all ranks; each gets its ``count`` elements in ``out_array``."""
        parts = self.communicator.size * _count("reduce_scatter", count)
        given = _first("reduce_scatter: in_array", _flat("reduce_scatter", in_array), parts)
        target = _first("reduce_scatter: out_array", _flat("reduce_scatter", out_array), count)
        with _on(stream):
            self.communicator.reduce_scatter(given, target, op=op)

    def all_gather(self, in_array: Any, out_array: Any, count: int, stream: Any = None) -> None:
        """Give every rank the first ``count`` elements of all, in the order of ranks."""
        parts = self.communicator.size * _count("all_gather", count)
        given = _first("all_gather: in_array", _flat("all_gather", in_array), count)
        target = _first("all_gather: out_array", _flat("all_gather", out_array), parts)
        with _on(stream):
            self.communicator.allgather(given, target)

    def send(self, array: Any, peer: int, stream: Any = None) -> None:
        """Send ``array`` to rank ``peer``."""
        with _on(stream):
            self.communicator.send(_flat("send", array), peer)

    def recv(self, out_array: Any, peer: int, stream: Any = None) -> None:
        """Receive as many elements as ``out_array`` has from rank ``peer``."""
        status, target = Status(), _flat("recv", out_array)
        with _on(stream):
            self.communicator.recv(target, peer, status=status)
        _all_came("recv", status, target)

    def send_recv(self, in_array: Any, out_array: Any, peer: int, stream: Any = None) -> None:
        """Send ``in_array`` to rank ``peer`` and receive ``out_array`` from it, at once."""
        status, target = Status(), _flat("send_recv", out_array)
        with _on(stream):
            given = _flat("send_recv", in_array)
            self.communicator.sendrecv(given, peer, target, peer, status=status)
        _all_came("send_recv", status, target)

    def scatter(self, in_array: Any, out_array: Any, root: int = 0, stream: Any = None) -> None:
        """Give rank r the r-th of the ``(ranks, ...)`` parts of rank ``root``'s ``in_array``."""
        given = _flat("scatter", in_array) if self.rank == root else None
        with _on(stream):
            self.communicator.scatter(given, _flat("scatter", out_array), root=root)

    def gather(self, in_array: Any, out_array: Any, root: int = 0, stream: Any = None) -> None:
        """Give rank ``root`` all ranks' ``in_array`` as its ``out_array``, ``(ranks, ...)``."""
        target = _flat("gather", out_array) if self.rank == root else None
        with _on(stream):
            self.communicator.gather(_flat("gather", in_array), target, root=root)

    def all_to_all(self, in_array: Any, out_array: Any, stream: Any = None) -> None:
        """Exchange the ``(ranks, ...)`` parts: part r of ``in_array`` goes to rank r."""
        with _on(stream):
            given, target = _flat("all_to_all", in_array), _flat("all_to_all", out_array)
            self.communicator.alltoall(given, target)

    def barrier(self) -> None:
        """Wait, on the host, until all ranks are here; for no GPU."""
        self.communicator.barrier()


def _by_hand(size: int, rank: int, host: str, port: int) -> Communicator:
    from collectives.launchers.detect import place  # as init() does: when needed

    own = {"RANK": str(rank), "WORLD_SIZE": str(size)}
    meet = {"MASTER_ADDR": str(host), "MASTER_PORT": str(port)}
    settings = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("COLLECTIVES_") and name not in _PLACES
    }
    return join(place(variables={**settings, **own, **meet}))


def _by_mpi(size: int, rank: int) -> Communicator:
    try:
        world: Any = import_module("mpi4py.MPI").COMM_WORLD
    except ImportError as error:
        raise UnsupportedError(f"use_mpi=True needs mpi4py: {error}") from error
    if (world.Get_size(), world.Get_rank()) != (size, rank):
        raise InvalidArgumentError(
            f"use_mpi=True: this is rank {rank} of {size}, but MPI has it as rank "
            f"{world.Get_rank()} of {world.Get_size()}"
        )
    return Communicator.from_mpi(world)


def _on(stream: Any) -> AbstractContextManager[None]:
    return nullcontext() if stream is None else on_stream(stream)


def _flat(call: str, array: Any) -> Any:
    """Return all elements of a contiguous array in the order of memory, without a copy."""
    if of_cupyx(array):
        raise UnsupportedError(f"{call}: sparse matrices are taken by all_reduce only so far")
    flags = getattr(array, "flags", None)
    if flags is None:
        raise InvalidArgumentError(
            f"{call}: an array of type {type(array).__name__} has no flags: pass one of CuPy"
        )
    if flags.c_contiguous:
        return array.reshape(-1)
    if flags.f_contiguous:
        return array.T.reshape(-1)
    raise InvalidArgumentError(
        f"{call}: an array is strided memory: pass one that is contiguous in C or Fortran order"
    )


def _count(call: str, count: int) -> int:
    number = integer(count)
    if number is None or number < 0:
        raise InvalidArgumentError(
            f"{call}: count is {count!r}: give the elements of each rank, 0 or more"
        )
    return number


def _first(what: str, elements: Any, count: int) -> Any:
    if elements.size < count:
        raise InvalidArgumentError(f"{what} has {elements.size} elements, {count} are needed")
    return elements[:count]


def _all_came(call: str, status: Status, target: Any) -> None:
    if status.count != target.size:
        raise InvalidArgumentError(
            f"{call}: rank {status.source} has sent {status.count} elements, where out_array has "
            f"{target.size}: its beginning was written"
        )


def _check_alike(given: Any, out: Any) -> None:
    if not of_cupyx(out) or any(
        getattr(given, what) != getattr(out, what) for what in ("format", "shape", "dtype")
    ):
        raise InvalidArgumentError(
            f"all_reduce: out_array is no {given.format} matrix of shape {given.shape} and dtype "
            f"{given.dtype}, as in_array is"
        )


def _fill(out: Any, result: Any) -> None:
    """Make ``out`` the matrix that ``result`` is."""
    names = ("row", "col") if result.format == "coo" else ("indices", "indptr")
    for name in ("data", *names):
        setattr(out, name, getattr(result, name))
    out.has_canonical_format = result.has_canonical_format
