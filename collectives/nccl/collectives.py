# SPDX-License-Identifier: Apache-2.0
"""The collectives and messages of a communicator, as methods."""

from __future__ import annotations

from typing import Any

from collectives.nccl import calls, quick
from collectives.nccl.arrays import Array
from collectives.nccl.caller import Caller
from collectives.nccl.calls import Call
from collectives.nccl.operations import Op
from collectives.nccl.streams import Stream


class Collectives(Caller):
    """What a communicator does with arrays.

    Arrays are contiguous, of CuPy or torch, or have ``__cuda_array_interface__`` or DLPack; of the
    host where the library takes them. All ranks pass the same dtype and number of elements. A
    method returns the array that it writes, when the call is enqueued on ``stream``: by default
    the current one of the arrays' owner. Wrong arguments raise InvalidArgumentError before NCCL is
    called, what NCCL reports NcclError, a function that the library does not have UnsupportedError.
    """

    def allreduce(
        self,
        x: Array,
        out: Array | None = None,
        *,
        op: Op = "sum",
        stream: Stream = None,
    ) -> Array:
        """Fold x of all ranks into out of each, which has as many elements; without out into x."""
        if stream is None and quick.allreduce(self, x, out, op):
            return x if out is None else out
        return self.run(calls.allreduce(self, x, out, op, stream))

    def reduce(
        self,
        x: Array,
        out: Array | None = None,
        *,
        root: int = 0,
        op: Op = "sum",
        stream: Stream = None,
    ) -> Array:
        """Fold x of all ranks into out of the root, without out into its x; others need no out."""
        return self.run(calls.reduce(self, x, out, root, op, stream))

    def broadcast(
        self,
        x: Array,
        out: Array | None = None,
        *,
        root: int = 0,
        stream: Stream = None,
    ) -> Array:
        """Copy the root's x to out of all, without out to their x; with out, others need no x."""
        return self.run(calls.broadcast(self, x, out, root, stream))

    def allgather(self, x: Array, out: Array, *, stream: Stream = None) -> Array:
        """Join x of all ranks in out of each, which has ``size`` times as many elements.

        In place where x is the part of out that belongs to this rank.
        """
        return self.run(calls.allgather(self, x, out, stream))

    def reduce_scatter(
        self, x: Array, out: Array, *, op: Op = "sum", stream: Stream = None
    ) -> Array:
        """Fold x of all ranks; each gets its part in out, of which x has ``size`` times as much.

        In place where out is the part of x that belongs to this rank.
        """
        return self.run(calls.reduce_scatter(self, x, out, op, stream))

    def alltoall(self, x: Array, out: Array, *, stream: Stream = None) -> Array:
        """Send the r-th part of x to rank r; join what all have sent in out. Since NCCL 2.28."""
        return self.run(calls.alltoall(self, x, out, stream))

    def gather(
        self,
        x: Array,
        out: Array | None = None,
        *,
        root: int = 0,
        stream: Stream = None,
    ) -> Array:
        """Join x of all ranks in out of the root; others need no out. Since NCCL 2.28."""
        return self.run(calls.gather(self, x, out, root, stream))

    def scatter(
        self,
        x: Array | None,
        out: Array,
        *,
        root: int = 0,
        stream: Stream = None,
    ) -> Array:
        """Send the r-th part of the root's x to rank r; others need no x. Since NCCL 2.28."""
        return self.run(calls.scatter(self, x, out, root, stream))

    def send(self, x: Array, peer: int, *, stream: Stream = None) -> Array:
        """Send x to a rank, which receives as many elements of that dtype."""
        if stream is None and quick.message(self, "ncclSend", x, peer, self.size):
            return x
        return self.run(calls.send(self, x, peer, stream))

    def recv(self, out: Array, peer: int, *, stream: Stream = None) -> Array:
        """Receive out from a rank. Sends and receives at one time need a :func:`group`."""
        if stream is None and quick.message(self, "ncclRecv", out, peer, self.size):
            return out
        return self.run(calls.recv(self, out, peer, stream))

    def run(self, call: Call) -> Any:
        """Make a call that was prepared."""
        handle = self.handle
        self.finish(call.function, *call.arguments, handle, call.stream, kept=call.arrays)
        return call.result
