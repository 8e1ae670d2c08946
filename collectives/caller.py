# SPDX-License-Identifier: Apache-2.0
"""What every collective of a communicator is called through: at once, later, or in a group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from collectives import arrays
from collectives._ffi import check, ffi, lib
from collectives.arrays import Array, Operand, operand, repack
from collectives.defined import own_by_number
from collectives.errors import CollectiveError, UnsupportedError
from collectives.fusion import Deferred, abandon, agreed, batches, fused, fusion_key
from collectives.gpu_arrays import Place, place_of
from collectives.gpu_streams import as_pointer, follow, lead
from collectives.handle import Handle
from collectives.names import KINDS, RIVALS, Options, rest_of
from collectives.operations import Operation, operation_of, raise_failure_of
from collectives.pending import Block, Pending
from collectives.structures import for_each
from collectives.worker import Worker

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.rivals.rival import NcclRival

NOTHING = ffi.NULL
_MAKING = threading.Lock()  # held to begin a worker: a communicator has one
collective = lib.coll_collective


class Caller:
    """One rank of a group, and the way from its methods to the native layer."""

    def __init__(self, handle: Handle) -> None:
        """Take over a handle. Users call init() or local()."""
        self._handle = handle
        self._door = handle.door
        self._call: Callable[..., None] = handle.call
        self._worker: Worker | None = None
        # Held for a job in flight, and by who lets threads take turns, as collectives.torch does.
        self._turn: Any = threading.RLock()
        self._plain = True  # calls are made at once: there is no worker, and no group
        self._deferred: list[Deferred] | None = None  # within group()
        self._deferred_in_job: list[Deferred] | None = None  # within that of a job in flight
        self._within: Block | None = None  # of the group
        self._schedules: dict[tuple[int, int], int] = {}  # of own algorithms, by root
        self._nccl: NcclRival | None = None  # once there was a call of arrays on a GPU

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
        ever, to be waited for after the block; a block of such calls alone does not wait for them.

        The results are those of the same calls without a group: arrays are read at the end of the
        block, and a call that uses memory which one before it writes does not share its message.
        A call between them that cannot wait, as send or barrier, first launches those before it.

        All ranks make the same calls in their blocks, on arrays of the same lengths that overlap
        alike; else all get MismatchError. Where a call fails, those behind it are not made. Where
        a block raises, none of its calls is made; the other ranks, which made theirs, then run
        into their time-out unless this one aborts or closes. Handles of calls that were not made
        end with an error that says so.
        """
        if self._collected() is not None:  # the group around this one launches them
            yield
            return
        if self._working():
            with self._group_in_job():
                yield
            return
        self._deferred, self._within = [], Block()
        direct, self._call = self._call, self._call_in_group
        self._plain = False
        try:
            yield
            calls = self._deferred
        except BaseException as error:
            abandon(self._deferred, error)
            raise
        finally:
            self._deferred = self._within = None
            # The worker may have begun within the group: from then on calls keep its order.
            self._plain = self._worker is None
            self._call = direct if self._plain else self._call_in_order
        self._launch(calls)

    @contextmanager
    def _group_in_job(self) -> Iterator[None]:
        """Do so within a job in flight, as by a codec: the program may be in a group, too."""
        self._deferred_in_job = []
        try:
            yield
            calls = self._deferred_in_job
        except BaseException as error:
            abandon(self._deferred_in_job, error)
            raise
        finally:
            self._deferred_in_job = None
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
        later = async_op or not self._plain
        operation = operation_of(op)

        def run(words: str = "") -> Array:
            if later:  # calls before this one may have written to what is strided
                for side in (source, target):
                    if side is not None:
                        repack(side)
            call = (kind, source, target, options, op, root, count, counts, words)
            self._run(name, operation, *call)
            return None if target is None else arrays.delivered(target)

        if (calls := self._collected()) is not None:
            # An algorithm of the program is made known in the call's turn.
            plain = (-1, *options[1:])
            self._refuse_early(name, kind, source, target, plain, op, root, count, counts)
            pending = self._deferred_pending(name) if async_op else None
            key = fusion_key(kind, source, target, op, options)
            calls.append(Deferred(name, run, key, source, target, pending))
            return pending or (None if target is None else target.origin)
        if async_op:
            return self._submit(name, run)
        return self._in_order(name, run)

    def _refuse_early(self, name: str, *call: Any) -> None:
        """Raise what is wrong with a call of a group, of which none was made yet."""
        with self._handle.held(name) as native:
            request, _kept = self._request(*call)
            check(lib.coll_validate(native, request))

    def _collected(self) -> list[Deferred] | None:
        """Return the calls of the group, None without one; a job in flight has its own."""
        return self._deferred_in_job if self._working() else self._deferred

    def _collect(self, calls: list[Deferred] | None) -> None:
        if self._working():
            self._deferred_in_job = calls
        else:
            self._deferred = calls

    def _working(self) -> bool:
        """Whether this is the thread of this communicator, which does jobs in flight."""
        worker = self._worker
        return worker is not None and worker.thread is threading.current_thread()

    def _deferred_pending(self, name: str) -> Pending:
        return Pending(name, None if self._working() else self._within)

    def _run(
        self,
        name: str,
        operation: Operation | None,
        *call: Any,
    ) -> None:
        """Make a call of :meth:`_request` now."""
        place = place_of(name, call[1], call[2])
        try:
            if place.device >= 0:
                self._run_on_gpu(name, place, *call)
            else:
                request, _kept = self._request(*call)
                self._handle.call(name, lib.coll_run, request)
        except CollectiveError as error:
            raise_failure_of(operation, name, error)
            raise

    def _run_on_gpu(self, name: str, place: Place, *call: Any) -> None:
        """Make it of arrays on a GPU: by NCCL, where that is faster or wanted, or by ours."""
        if self._nccl is None:
            from collectives.rivals.rival import NcclRival  # where there is a GPU

            self._nccl = NcclRival(cast("Communicator", self))
        device, stream, others = place
        follow(device, stream, others)
        if not self._nccl.ran(name, place, call):
            request, _kept = self._request(*call)
            self._handle.call(name, lib.coll_gpu_run, request, device, as_pointer(stream))
        lead(device, stream, others)

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
        words: str = "",
    ) -> tuple[Any, Any]:
        """Return a ``coll_call``, and what must live as long. All ranks must agree on ``words``."""
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
        algorithm, request.mode, request.timeout, request.accumulate = options[:4]
        request.reproducible, request.of_timeout = options[4], rest_of(options[2])
        request.algorithm = algorithm if algorithm >= -1 else self._own(algorithm, root)
        said = ffi.new("char[]", words.encode("utf-8", "replace")) if words else NOTHING
        request.agreed = said
        return request, (elements, said)

    def _own(self, number: int, root: int) -> int:
        """Return what the native layer calls an algorithm of the program (collectives.own)."""
        for name, of_rival in RIVALS.items():
            if number == of_rival:
                raise UnsupportedError(
                    f"algorithm {name!r} is for calls of arrays on GPUs, and not for persistent "
                    "ones: leave it out"
                )
        known = self._schedules.get((number, root))
        if known is not None:
            return known
        own = own_by_number(number)
        words, word = own.proved(self.size, root), own.name.encode("utf-8", "replace")
        place = ffi.new("int32_t *")

        def add(native: Any) -> int:
            return int(lib.coll_add_schedule(native, words, len(words), word, place))

        self._handle.call("algorithm", add)
        self._schedules[number, root] = place[0]
        self._handle.given_names[place[0]] = own.name
        return int(place[0])

    def _submit(self, name: str, job: Callable[[], Any], pending: Pending | None = None) -> Pending:
        """Leave a job to the thread of this communicator, in its turn; one of a job is done."""
        if self._worker is not None and self._worker.at_job and self._working():
            made = pending or Pending(name)
            made.run(job)
            return made
        with _MAKING:
            if self._worker is None:
                self._worker = Worker(f"collectives rank {self.rank}", self._turn)
                self._call, self._plain = self._call_in_order, False
        return self._worker.submit(pending or Pending(name), job)

    def _in_order(self, name: str, job: Callable[[], Any]) -> Any:
        """Do a job now, or, where others are in flight, when they are done."""
        worker = self._worker
        # Who waited for the worker in a turn of its own would wait for ever.
        idle = worker is None or not (worker.busy or worker.holds_back)
        if idle or self._working() or self._turn._is_owned():
            return job()
        pending = self._submit(name, job)
        try:
            return pending.wait()
        except BaseException as error:
            # What the job itself has raised is as if it had been done here.
            from_outside = not isinstance(error, CollectiveError) and not pending.done()
            if from_outside and self._handle.open:
                self._handle.abort(f"it was interrupted in {name} by {type(error).__name__}")
            raise

    def _call_in_order(self, name: str, start: Callable[..., int], *arguments: Any) -> None:
        def call() -> None:
            self._handle.call(name, start, *arguments)

        if self._deferred_in_job is not None and self._working():
            self._after_deferred(call)
        else:
            self._in_order(name, call)

    def _call_in_group(self, name: str, start: Callable[..., int], *arguments: Any) -> None:
        """Make a call that cannot wait for the end of its group, after those before it."""
        if self._collected() is None:
            self._call_in_order(name, start, *arguments)
            return
        self._after_deferred(lambda: self._call_in_order(name, start, *arguments))

    def _after_deferred(self, job: Callable[[], Any]) -> Any:
        """Launch the calls of the group so far, and do a job."""
        calls = self._collected() or []
        self._collect(None)
        try:
            self._launch(calls)
            return job()
        finally:
            self._collect([])

    def _alone(self, name: str, run: Callable[[str], Any], async_op: bool) -> Any:
        """Do what makes calls of its own and gives what was not there before; return that.

        ``run`` takes what all ranks must agree on besides. With ``async_op`` it is done later, in
        a group with the calls of the group.
        """
        calls = self._collected()
        if calls is not None and async_op:
            pending = self._deferred_pending(name)
            calls.append(Deferred(name, run, None, None, None, pending))
            return pending
        if calls is not None:
            return self._after_deferred(lambda: self._in_order(name, lambda: run("")))
        if async_op:
            return self._submit(name, lambda: run(""))
        return self._in_order(name, lambda: run(""))

    def _launch(self, calls: Sequence[Deferred]) -> None:
        """Make the calls of a group."""
        if not calls:
            return
        handles = [call.pending for call in calls if call.pending is not None]
        for pending in handles:
            pending.launch()

        def run() -> None:
            try:
                for batch in batches(calls):
                    self._finish(batch)
            except BaseException as error:
                abandon(calls, error)
                raise

        if len(handles) < len(calls):
            self._in_order("group", run)
            return
        try:
            whole = self._submit("group", run)
        except RuntimeError as error:  # there is no room for one more thread
            abandon(calls, error)
            raise
        for pending in handles:
            pending.made_as(whole)
        whole.when_failed(lambda error: abandon(calls, error))

    def _finish(self, batch: Sequence[Deferred]) -> None:
        try:
            if len(batch) == 1:
                results = [batch[0].run(agreed(batch))]
            else:
                fused(batch, lambda buffer: self._fused(buffer, batch))
                results = [arrays.delivered(call.target) for call in batch if call.target]
        except BaseException as error:
            for call in batch:
                if call.pending is not None:
                    call.pending.fail(error)
            raise
        for call, result in zip(batch, results, strict=True):
            if call.pending is not None:
                call.pending.finish(result)

    def _fused(self, buffer: Any, batch: Sequence[Deferred]) -> None:
        assert batch[0].key is not None
        _, _, op, options = batch[0].key
        both = operand(buffer, "group")
        call = ("allreduce", both, both, options, op, 0, None, None, agreed(batch))
        self._run(batch[0].name, operation_of(op), *call)

    def _each(self, name: str, tree: Any, make: Callable[..., Any], async_op: bool) -> Any:
        """Make a call for every array of a structure."""
        return for_each(self, name, tree, make, async_op)
