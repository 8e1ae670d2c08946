# SPDX-License-Identifier: Apache-2.0
"""A communicator: a fixed group of ranks, and the collectives among them."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from collectives.contributions import Contributions
from collectives.ending import tell_at_end
from collectives.errors import CollectiveError
from collectives.groups import Groups
from collectives.handle import Handle
from collectives.movements import Movements
from collectives.pairwise import Pairwise
from collectives.persistent import PersistentCalls
from collectives.reductions import Reductions
from collectives.sparse.planning import Planning
from collectives.symmetric import Symmetric
from collectives.tracing import EVENTS, Trace
from collectives.tuning.tunable import Tunable

if TYPE_CHECKING:
    from collectives.last import LastCall
    from collectives.topology import Topology


class Communicator(
    Reductions, Contributions, Planning, Movements, Pairwise, Groups, Symmetric, Tunable
):
    """A fixed group of ranks; made by :func:`collectives.init` and :func:`collectives.local`.

    All ranks make the same calls in the same order. Arrays are NumPy arrays, torch tensors, or
    objects with DLPack or the buffer protocol; of CuPy and torch, on GPUs, too. A writable array is
    changed in place and returned; a read-only one gives a new result. Which dtypes there are, which
    ``op`` is defined on which, how sums are rounded and where they overflow: docs/arithmetic.md.
    ``op`` may also be an operation of the program (:func:`collectives.op`).

    Options of every collective, None leaves them to the library: ``algorithm``, a name from
    :func:`collectives.algorithms`, or "nccl" for arrays on GPUs (docs/nccl.md); ``mode``, where
    messages lie ("staged", "inline"; "pull" and "push" where arrays are within reach);
    ``timeout``, seconds for the whole call. The first two must be the same on all ranks.

    Those that fold take ``reproducible``. True: the bits of a result depend on the contributions
    and the number of ranks alone (but for which NaN a NaN is), not on algorithm, mode, lengths, or
    which of them is called.
    "any_p": nor on the number of ranks, since sums are exact and rounded once (sum and avg). What
    it costs: docs/arithmetic.md.

    Every call ends: with the right result, or with a :class:`CollectiveError`. Arguments are
    checked before anything is sent, so InvalidArgumentError and UnsupportedError leave the
    communicator as it was. Other errors end it on all ranks, but for a MismatchError of lengths
    that a v-form finds by itself (docs/errors.md).

    One thread at a time. With ``with`` it is closed at the end of the block, and aborted for all
    ranks when the block raises.
    """

    def __init__(self, handle: Handle) -> None:
        """Take over a handle. Users call init() or local()."""
        super().__init__(handle)
        tell_at_end(self)

    @staticmethod
    def from_mpi(comm: Any, timeout: float | None = None) -> Communicator:
        """Return a communicator of the same ranks as ``comm``, one of mpi4py, which all call.

        Its ranks tell each other through MPI how to meet; after that MPI is not used. MPI knows no
        time-out, so ``timeout`` (seconds; None: COLLECTIVES_TIMEOUT, else 300) bounds what follows,
        and each call. Raises InvalidArgumentError for COMM_NULL, an intercommunicator, or anything
        that is no communicator.
        """
        from collectives.launchers.given import of_mpi  # as init() imports launchers: when needed

        return of_mpi(comm, timeout)

    @staticmethod
    def from_store(store: Any, rank: int, size: int, timeout: float | None = None) -> Communicator:
        """Return a communicator of ``size`` processes that share ``store``, one of torch's.

        Any store of torch.distributed will do, as a TCPStore or FileStore. Each process gives its
        own ``rank``, 0 to ``size`` - 1. They may do so again with the same store. On several hosts
        the store carries the secret of the ranks, so whoever reaches it is trusted, unless all
        have COLLECTIVES_SECRET_FILE. ``timeout`` bounds the meeting and each call, in seconds;
        None: COLLECTIVES_TIMEOUT, else 300. Raises InvalidArgumentError for a rank, size or store
        that is none, CollectiveTimeoutError where not all come, BootstrapError where the store
        fails, or a rank comes twice.
        """
        from collectives.launchers.given import of_store

        return of_store(store, rank, size, timeout)

    @property
    def closed(self) -> bool:
        """Whether this rank has closed it."""
        return not self._handle.open

    @property
    def transport(self) -> str:
        """How its collectives go: ``"memory"``, ``"tcp"`` (memory within a machine), ``"ucx"``."""
        return self._handle.transport

    @property
    def sequence(self) -> int:
        """How many collectives this communicator has begun."""
        return self._handle.sequence

    @property
    def persistent(self) -> PersistentCalls:
        """Its collectives as persistent calls: ``call = comm.persistent.allreduce(x)``.

        The call is bound to its arrays; ``call()``, or ``call.start()`` and ``call.wait()``, makes
        it, with what ``x`` holds then.
        """
        return PersistentCalls(self)

    @property
    def last(self) -> LastCall | None:
        """What its last collective was, how long it took here, and how much of that it waited.

        ``print(comm.last)`` tells it in a line. None where no collective is done, and where the
        last one failed. Small calls are timed from the first time on that this is read. Like a
        call it waits for those in flight, and raises ClosedError after close().
        """
        from collectives.last import last_call

        found: LastCall | None = self._in_order("last", lambda: last_call(self._handle))
        return found

    def trace(self, path: str | os.PathLike[str], *, events: int = EVENTS) -> Trace:
        """Record the calls of this communicator, as :func:`collectives.trace` does of all.

        Groups that are made of it in the block are recorded as well. For ranks that are threads,
        which all call it.
        """
        return Trace(self, path, events)

    def topology(self, *, measure: bool = True, host: str | None = None) -> Topology:
        """Find where all ranks are, and measure the links between them. Every rank must call it.

        Returns the same value on all ranks. ``measure=False`` leaves the links out; measuring sends
        messages between pairs of ranks, one pair after the other, and takes well below a second on
        one machine. It is done on a communicator of its own (:meth:`dup`), so messages and receives
        of the program may be under way. ``host`` is this rank's, where the machine's name does not
        tell it from others. Raises InvalidArgumentError for a ``host`` that is no printable text.
        """
        from collectives.topology.probe import found

        return found(self, host, measure)

    def __repr__(self) -> str:
        """Tell rank, size and state."""
        state = ", closed" if self.closed else ""
        return f"<Communicator rank {self.rank} of {self.size}{state}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: two owners of one rank would end each other."""
        raise TypeError(
            "a Communicator cannot be pickled or copied: it is this process's own place in its "
            "group; each process makes its own with collectives.init(), "
            "each thread gets one from collectives.local()"
        )

    def close(self) -> None:
        """Leave. Local: never waits for peers; a second call does nothing.

        (Where NCCL has made calls of arrays on GPUs, five seconds at most for what it enqueued.)

        Raises MismatchError where an earlier one-way call (broadcast, reduce) turns out not to
        have been the same on all ranks.
        """
        try:
            if self._nccl is not None:
                self._nccl.close()
            self._handle.close()
        finally:
            if self._worker is not None:
                self._worker.stop()

    def abort(self, reason: str) -> None:
        """End the present and later calls of all ranks with AbortedError, which tells the reason.

        May be called from any thread. Between machines ranks are told that are connected with this
        one, or with one that was told; who comes later finds its door shut, and gets a
        PeerLostError. Raises ClosedError after close().
        """
        self._handle.abort(str(reason))
        if self._nccl is not None:
            self._nccl.abort()

    def revoke(self) -> None:
        """End the present and later calls of all ranks with AbortedError, as :meth:`abort` does.

        For ranks that mean to go on: those that live then call :meth:`shrink`. May be called from
        any thread. Raises ClosedError after close().
        """
        self._handle.revoke()
        if self._nccl is not None:
            self._nccl.abort()

    def __enter__(self) -> Communicator:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; tell the other ranks first when the block raised."""
        if error is None:
            self.close()
            return
        try:
            if not self.closed:
                self.abort(f"it raised {type(error).__name__}: {error}")
            self.close()
        except CollectiveError:
            pass  # the error of the block is the cause, and is on its way

    def __del__(self) -> None:
        """Close silently."""
        try:
            if self._nccl is not None:
                self._nccl.abort()  # to close it would wait for other ranks
            self._handle.close()
        except Exception:
            return  # nobody is there to be told; at interpreter exit even names may be gone
