# SPDX-License-Identifier: Apache-2.0
"""Calls whose arrays are looked at once: ``comm.persistent.allreduce(x)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collectives.nccl import calls, groups
from collectives.nccl.arrays import Array
from collectives.nccl.calls import Call
from collectives.nccl.constants import SUCCESS
from collectives.nccl.operations import Op
from collectives.nccl.streams import Stream

if TYPE_CHECKING:
    from collectives.nccl.collectives import Collectives


class PersistentCall:
    """A collective on arrays that were looked at when it was made; each call enqueues it once more.

    It holds the arrays, and goes to the stream that was the current one then, or was given.
    """

    __slots__ = ("_arguments", "_call", "_comm", "_function")

    def __init__(self, comm: Collectives, call: Call) -> None:
        self._comm, self._call = comm, call
        self._function = comm.library.function(call.function)
        self._arguments = (*call.arguments, comm.handle, call.stream)

    def __call__(self) -> Any:
        """Enqueue it; return the array that it writes. Raises as the method does."""
        comm = self._comm
        if comm.busy or groups.OPEN:  # the long way, which also says what is wrong
            return comm.run(self._call)
        code = self._function(*self._arguments)
        if code != SUCCESS:
            comm.settle(self._call.function, code)
        return self._call.result


class PersistentCalls:
    """The collectives of a communicator, to be called often: arguments are those of its methods."""

    __slots__ = ("_comm",)

    def __init__(self, comm: Collectives) -> None:
        self._comm = comm

    def allreduce(
        self, x: Array, out: Array | None = None, *, op: Op = "sum", stream: Stream = None
    ) -> PersistentCall:
        """Return :meth:`Communicator.allreduce` of these arrays."""
        return PersistentCall(self._comm, calls.allreduce(self._comm, x, out, op, stream))

    def reduce(
        self,
        x: Array,
        out: Array | None = None,
        *,
        root: int = 0,
        op: Op = "sum",
        stream: Stream = None,
    ) -> PersistentCall:
        """Return :meth:`Communicator.reduce` of these arrays."""
        return PersistentCall(self._comm, calls.reduce(self._comm, x, out, root, op, stream))

    def broadcast(
        self, x: Array, out: Array | None = None, *, root: int = 0, stream: Stream = None
    ) -> PersistentCall:
        """Return :meth:`Communicator.broadcast` of these arrays."""
        return PersistentCall(self._comm, calls.broadcast(self._comm, x, out, root, stream))

    def allgather(self, x: Array, out: Array, *, stream: Stream = None) -> PersistentCall:
        """Return :meth:`Communicator.allgather` of these arrays."""
        return PersistentCall(self._comm, calls.allgather(self._comm, x, out, stream))

    def reduce_scatter(
        self, x: Array, out: Array, *, op: Op = "sum", stream: Stream = None
    ) -> PersistentCall:
        """Return :meth:`Communicator.reduce_scatter` of these arrays."""
        return PersistentCall(self._comm, calls.reduce_scatter(self._comm, x, out, op, stream))

    def alltoall(self, x: Array, out: Array, *, stream: Stream = None) -> PersistentCall:
        """Return :meth:`Communicator.alltoall` of these arrays."""
        return PersistentCall(self._comm, calls.alltoall(self._comm, x, out, stream))

    def send(self, x: Array, peer: int, *, stream: Stream = None) -> PersistentCall:
        """Return :meth:`Communicator.send` of this array."""
        return PersistentCall(self._comm, calls.send(self._comm, x, peer, stream))

    def recv(self, out: Array, peer: int, *, stream: Stream = None) -> PersistentCall:
        """Return :meth:`Communicator.recv` into this array."""
        return PersistentCall(self._comm, calls.recv(self._comm, out, peer, stream))
