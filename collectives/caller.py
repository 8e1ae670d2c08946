# SPDX-License-Identifier: Apache-2.0
"""What every collective of a communicator is called through: at once, later, or in a group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from collectives import arrays
from collectives._ffi import ffi, lib
from collectives.arrays import Array, Operand, operand
from collectives.errors import CollectiveError, InvalidArgumentError
from collectives.fusion import Deferred, batches, fused, leaves, rebuilt
from collectives.handle import Handle
from collectives.names import KINDS, Options
from collectives.operations import raise_failure_of
from collectives.own import own_by_number
from collectives.pending import Pending, Worker

NOTHING = ffi.NULL
collective = lib.coll_collective


class Caller:
    """One rank of a group, and the way from its methods to the native layer."""

    def __init__(self, handle: Handle) -> None:
        """Take over a handle. Users call init() or local()."""
        self._handle = handle
        self._call: Callable[..., None] = handle.call
        self._worker: Worker | None = None
        self._plain = True  # calls are made at once: there is no worker, and no group
        self._deferred: list[Deferred] | None = None  # within group()
        self._schedules: dict[tuple[int, int], int] = {}  # of own algorithms, by root

    @property
    def rank(self) -> int:
        """Place of this rank, 0 ... size-1."""
        return self._handle.rank

    @property
    def size(self) -> int:
        """How many ranks take part: p of the literature."""
        return self._handle.size

    @contextmanager
    def group(self) -> Iterator[None]:
        """Launch the calls of a ``with`` block together, at its end.

        Allreduces of up to 64 KiB with the same dtype, operation and options that follow one
        another share one message. A call in the block returns the array that will hold its result;
        what it holds is defined after the block. With ``async_op=True`` it returns a handle as
        ever; a block of such calls alone does not wait for them.

        All ranks make the same calls in their blocks. Where a block raises, none of its calls is
        made; the other ranks, which made theirs, then run into their time-out unless this one
        aborts or closes.
        """
        if self._deferred is not None:  # the group around this one launches them
            yield
            return
        self._deferred = []
        direct, self._call = self._call, self._call_in_group
        self._plain = False
        try:
            yield
            calls, self._deferred = self._deferred, None
        finally:
            self._deferred = None
            # The worker may have begun within the group: from then on calls keep its order.
            self._plain = self._worker is None
            self._call = direct if self._plain else self._call_in_order
        self._launch(calls)

    def _begin(
        self,
        name: str,
        kind: str,
        source: Operand | None,
        target: Operand | None,
        options: Options,
        *,
        op: int = 0,
        root: int = 0,
        count: int | None = None,
        counts: Sequence[int] | None = None,
        async_op: bool = False,
    ) -> Array:
        """Run the collective ``name`` of a kind; return what belongs to the caller.

        ``source`` None: this rank hands nothing in; ``target`` None: it gets nothing. ``count``
        and ``counts`` are elements, as in ``coll_call``; by default the source's.
        """

        def run() -> Array:
            self._run(name, kind, source, target, options, op, root, count, counts)
            return None if target is None else arrays.delivered(target)

        if self._deferred is not None:
            together = kind == "allreduce" and source is not None and target is not None
            key = (type(source.array), source.dtype, op, options) if together and source else None
            call = Deferred(name, run, key, source, target, Pending(name) if async_op else None)
            self._deferred.append(call)
            return call.pending or (None if target is None else target.origin)
        if async_op:
            return self._submit(name, run)
        return self._in_order(name, run)

    def _run(
        self,
        name: str,
        kind: str,
        source: Operand | None,
        target: Operand | None,
        options: Options,
        op: int,
        root: int,
        count: int | None,
        counts: Sequence[int] | None,
    ) -> None:
        request, _lengths = self._request(kind, source, target, options, op, root, count, counts)
        try:
            self._handle.call(name, lib.coll_run, request)
        except CollectiveError as error:
            raise_failure_of(op, name, error)
            raise

    def _request(
        self,
        kind: str,
        source: Operand | None,
        target: Operand | None,
        options: Options,
        op: int,
        root: int,
        count: int | None,
        counts: Sequence[int] | None,
    ) -> tuple[Any, Any]:
        """Return a ``coll_call``, and its lengths, which must live as long."""
        request = ffi.new("coll_call *")
        request.size = ffi.sizeof("coll_call")
        request.kind, request.op, request.root = KINDS[kind], op, root
        some = source if source is not None else target
        if some is not None:  # a barrier has neither
            request.dtype = some.dtype
            request.count = some.elements if count is None else count
        request.input = NOTHING if source is None else source.pointer
        request.output = NOTHING if target is None else target.pointer
        elements = NOTHING if counts is None else ffi.new("size_t[]", list(counts))
        request.counts = elements
        algorithm, request.mode, request.timeout, request.accumulate = options
        request.algorithm = algorithm if algorithm >= -1 else self._own(algorithm, root)
        return request, elements

    def _own(self, number: int, root: int) -> int:
        """Return what the native layer calls an algorithm of the program (collectives.own)."""
        known = self._schedules.get((number, root))
        if known is not None:
            return known
        words = own_by_number(number).encoded(self.size, root)
        place = ffi.new("int32_t *")

        def add(native: Any) -> int:
            return int(lib.coll_add_schedule(native, words, len(words), place))

        self._handle.call("algorithm", add)
        self._schedules[number, root] = place[0]
        return int(place[0])

    def _submit(self, name: str, job: Callable[[], Any], pending: Pending | None = None) -> Pending:
        """Leave a job to the thread of this communicator, behind those before."""
        if self._worker is None:
            self._worker = Worker(f"collectives rank {self.rank}")
            self._call, self._plain = self._call_in_order, False
        return self._worker.submit(pending or Pending(name), job)

    def _in_order(self, name: str, job: Callable[[], Any]) -> Any:
        """Do a job now, or, where others are in flight, when they are done."""
        worker = self._worker
        if worker is None or not worker.busy or worker.thread is threading.current_thread():
            return job()
        try:
            return self._submit(name, job).wait()
        except BaseException as error:
            if not isinstance(error, CollectiveError) and self._handle.open:
                self._handle.abort(f"it was interrupted in {name} by {type(error).__name__}")
            raise

    def _call_in_order(self, name: str, start: Callable[..., int], *arguments: Any) -> None:
        self._in_order(name, lambda: self._handle.call(name, start, *arguments))

    def _call_in_group(self, name: str, start: Callable[..., int], *arguments: Any) -> None:
        """Make a call that cannot wait for the end of its group, after those before it."""
        calls, self._deferred = self._deferred or [], None
        try:
            self._launch(calls)
            self._call_in_order(name, start, *arguments)
        finally:
            self._deferred = []

    def _launch(self, calls: Sequence[Deferred]) -> None:
        """Make the calls of a group."""
        if not calls:
            return

        def run() -> None:
            for batch in batches(calls):
                self._finish(batch)

        if all(call.pending is not None for call in calls):
            self._submit("group", run)
        else:
            self._in_order("group", run)

    def _finish(self, batch: Sequence[Deferred]) -> None:
        try:
            if len(batch) == 1:
                results = [batch[0].run()]
            else:
                fused(batch, lambda buffer: self._fused(buffer, batch[0]))
                results = [arrays.delivered(call.target) for call in batch if call.target]
        except BaseException as error:
            for call in batch:
                if call.pending is not None:
                    call.pending.fail(error)
            if any(call.pending is None for call in batch):
                raise
            return
        for call, result in zip(batch, results, strict=True):
            if call.pending is not None:
                call.pending.finish(result)

    def _fused(self, buffer: Any, call: Deferred) -> None:
        assert call.key is not None
        _, _, op, options = call.key
        both = operand(buffer, "group")
        self._run(call.name, "allreduce", both, both, options, op, 0, None, None)

    def _each(self, name: str, tree: Any, make: Callable[[Any], Any], async_op: bool) -> Any:
        """Make a call for every array of a structure, together; return the same structure."""
        arrays_of = leaves(tree)
        for leaf in arrays_of:
            if isinstance(leaf, bool | int | float | complex | str | None):
                raise InvalidArgumentError(
                    f"{name}: x is a {type(tree).__name__} with {leaf!r} in it: "
                    "pass an array, or a list, tuple or dict of arrays"
                )
        with self.group():
            results = [make(leaf) for leaf in arrays_of]
        if not async_op:
            return rebuilt(tree, iter(results))
        return self._submit(name, lambda: rebuilt(tree, iter([r.wait() for r in results])))
