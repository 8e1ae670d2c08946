# SPDX-License-Identifier: Apache-2.0
"""NCCL as a candidate for the calls of one communicator: asked once, measured, then chosen or not.

Among all ranks, or within hosts with ours between them (``way.py``, ``mixed.py``).

Everything here is decided alike on all ranks: by what is equal on all of them (kind, dtype, length,
operation, options), by what all have told, or by times that all know. Before each call of NCCL the
ranks agree on it, and on whether each can make it: NCCL itself looks at nothing, and waits for ever
for a rank that calls something else.
"""

from __future__ import annotations

import os
import warnings
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collectives import arrays
from collectives._ffi import lib
from collectives.arrays import Operand
from collectives.errors import CollectiveError, InvalidArgumentError, UnsupportedError
from collectives.gpu_arrays import Place
from collectives.gpu_streams import as_pointer
from collectives.names import OF_RIVALS, OPS, RIVALS
from collectives.rivals.explained import NcclTaken, left_out
from collectives.rivals.fitting import FOLDS, Fit, fitting, whole
from collectives.rivals.mixed import Mixed
from collectives.rivals.standing import agreed
from collectives.rivals.talk import all_agree
from collectives.rivals.trial import OURS, Decision, NcclFailedError, Run, is_captured, trial
from collectives.rivals.way import CAPTURED, GpuCall, Way, Whole
from collectives.tuning.forced import ALGORITHM, wished_kinds, wished_of_rivals
from collectives.tuning.table import TuningWarning

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.tuning.forced import Wished

BUDGET_S = 2.0  # for all trials of a communicator
_WAYS: dict[int, str] = {number: name for name, number in RIVALS.items()}
# Kind, dtype, and the bits of the number of bytes: lengths of a power of two share a choice.
Key = tuple[str, int, int]


class NcclRival:
    """What one rank knows of NCCL among the ranks of its communicator."""

    def __init__(self, comm: Communicator) -> None:
        """Know nothing yet: the first call that NCCL could make asks all ranks."""
        self._comm: Communicator = weakref.proxy(comm)  # which owns this, and ends when it is lost
        self._ways: dict[str, Way] = {}  # none: nobody has asked
        self.decisions: dict[Key, Decision] = {}
        self._spent = 0.0
        words = os.environ.get(ALGORITHM, "")
        self._wished, self._others = wished_of_rivals(words), wished_kinds(words)

    @property
    def asked(self) -> bool:
        """Whether the ranks have told what they have."""
        return bool(self._ways)

    def lacking(self, fit: Fit) -> dict[str, str]:
        """Return why each way cannot make such calls; "": it can. On all ranks alike."""
        return {name: way.lacks(fit) for name, way in self._ways.items()}

    def ran(self, name: str, place: Place, arguments_of: tuple[Any, ...]) -> bool:
        """Let NCCL make a call, if it is to; tell whether it has. Every rank must ask.

        ``arguments_of`` the call are those of ``Caller._request``.

        Raises UnsupportedError where the caller wants a way of NCCL, and it cannot.
        """
        algorithm = arguments_of[3][0]
        wanted = _WAYS.get(algorithm, "")
        closed = self.asked and all(way.why for way in self._ways.values())
        if not wanted and (closed or algorithm != -1):
            return False
        call = GpuCall(*arguments_of)
        if not wanted and (call.kind not in OF_RIVALS["nccl"] or self.closed_to(call.kind)):
            return False
        fit = fitting(call.kind, call.source.dtype, call.op, call.options, call.counts)
        if isinstance(fit, str):
            return _refused(name, wanted, fit)
        way = self._chosen(place, call, fit, wanted or self.wished(call.kind))
        if isinstance(way, str):
            return _refused(name, wanted, way)
        if why := self._unready(place, way):
            return _refused(name, wanted, why)
        if not self._agreed_on(place, way, call, fit):
            why = "on some rank arrays overlap, or are on another GPU than before"
            return _refused(name, wanted, why)
        self._make(name, place, way, call, fit)
        return True

    def _make(self, name: str, place: Place, way: Way, call: GpuCall, fit: Fit) -> None:
        number = self._comm._handle.sequence
        try:
            way.enqueue(place, call, fit)
        except BaseException as error:  # the others have enqueued it, and would wait for this rank
            self._end(f"{name} by NCCL failed: {error}")
            raise
        taken = NcclTaken(way.name, call.kind, whole(call.source, call.target), number)
        self._comm._handle.last_taken = taken

    def closed_to(self, kind: str) -> str:
        """Return why a call that leaves its algorithm open is not NCCL's; "": it may be."""
        forced = self._forced(kind)
        if forced is not None and not forced.way:
            return "another one is wished for by force()"
        if kind in self._others and kind not in self._wished:
            return f"another one is wished for by {ALGORITHM}"
        return ""

    def wished(self, kind: str) -> str:
        """Return the way that COLLECTIVES_ALGORITHM wishes for, else force(); "": none."""
        forced = self._forced(kind)
        return self._wished.get(kind) or (forced.way if forced is not None else "")

    def wisher(self, kind: str) -> str:
        """Return by what that is wished for."""
        return ALGORITHM if kind in self._wished else "force()"

    def _forced(self, kind: str) -> Wished | None:
        return self._comm._wishes.get(kind) if self._comm._wished else None

    def _chosen(self, place: Place, call: GpuCall, fit: Fit, wished: str) -> Way | str:
        """Return the way of a call, or why there is none; on all ranks alike."""
        if not self.asked:
            standing = agreed(self._comm, place.device)
            ways = (Whole(self._comm, standing), Mixed(self._comm, standing))
            self._ways = {way.name: way for way in ways}
            for name in {*self._wished.values(), wished} - {""}:
                if why := self._ways[name].why:
                    _warn(name, why)
        lacking = self.lacking(fit)
        if wished:
            return lacking[wished] or self._ways[wished]
        if all(lacking.values()):
            return left_out(lacking)
        decision = self._decided(place, call, fit)
        return decision.why if decision.by == OURS else self._ways[decision.by]

    def _unready(self, place: Place, way: Way) -> str:
        """Return why a way cannot be gone now; make it, if it was not there."""
        if (way.uncapturable or not way.made) and is_captured(place):
            return way.uncapturable or CAPTURED
        if not way.made:
            self._join(place, way)
        return way.why

    def _decided(self, place: Place, call: GpuCall, fit: Fit) -> Decision:
        """Return who runs such calls, after a trial where there was none yet."""
        nbytes = whole(call.source, call.target)
        key = (call.kind, call.source.dtype, nbytes.bit_length())
        known = self.decisions.get(key)
        if known is not None:
            return known
        if is_captured(place):
            return Decision(OURS, CAPTURED)
        if nbytes == 0:
            made = Decision(OURS, "there is nothing to move")
        elif self._spent >= BUDGET_S:
            made = self._nearest(key)
        else:
            made = self._tried(place, call, fit, nbytes)
        self.decisions[key] = made
        return made

    def _nearest(self, key: Key) -> Decision:
        """Return what was decided for the length that is nearest: time for trials is over."""
        alike = [
            (abs(other[2] - key[2]), other[2], found)
            for other, found in self.decisions.items()
            if other[:2] == key[:2] and found.rounds
        ]
        if not alike:
            return Decision(OURS, "time for trials was over, and none of such calls was measured")
        found = min(alike, key=lambda one: one[:2])[2]
        return replace(found, why=f"time for trials was over; nearby {found.why}", spent=0.0)

    def _tried(self, place: Place, call: GpuCall, fit: Fit, nbytes: int) -> Decision:
        """Race ours with the ways that are open; one that fails is closed, and the rest race."""
        words = f"trial of {_told(call)}"
        for _ in range(len(self._ways) + 1):
            for way in self._ways.values():
                if not way.made and not way.lacks(fit):
                    self._join(place, way)
            lacking = self.lacking(fit)
            if all(lacking.values()):
                return Decision(OURS, left_out(lacking))
            runs = {OURS: self._run_of_ours(place, call)}
            for name, why in lacking.items():
                if not why:
                    runs[name] = self._run_of(self._ways[name], place, call, fit)
            try:
                made = trial(self._comm, place, (call.source, call.target), runs, nbytes, words)
            except NcclFailedError as error:
                # It holds the arrays until what was enqueued on them is ended.
                self._give_up(self._ways[error.way], "it could not make a call on some rank")
            else:
                self._spent += made.spent
                return made
        raise AssertionError("no way is left, and none is missing")

    def _run_of_ours(self, place: Place, call: GpuCall) -> Run:
        comm, options = self._comm, (-1, *call.options[1:])

        def run(source: Operand, target: Operand | None) -> bool:
            own = call._replace(source=source, target=target, options=options)
            request, _kept = comm._request(*own)
            stream = as_pointer(place.stream)
            comm._handle.call(call.kind, lib.coll_gpu_run, request, place.device, stream)
            return True

        return run

    def _run_of(self, way: Way, place: Place, call: GpuCall, fit: Fit) -> Run:
        def run(source: Operand, target: Operand | None) -> bool:
            own = call._replace(source=source, target=target)
            try:
                ready = self._agreed_on(place, way, own, fit)
                way.enqueue(place, own, fit)
            except CollectiveError:
                return False
            return ready

        return run

    def _agreed_on(self, place: Place, way: Way, call: GpuCall, fit: Fit) -> bool:
        """Tell whether all ranks make this call, and each can. Raises as a collective does."""
        comm = self._comm
        words = f"{_told(call, way.name)} {call.words}"
        try:
            return all_agree(comm, way.takes(place, call, fit), words, call.options[2])
        except InvalidArgumentError:  # nothing was sent
            raise
        except CollectiveError:  # the communicator has failed: on the GPU nobody comes any more
            self.abort()
            raise

    def _join(self, place: Place, way: Way) -> None:
        """Make it, on all ranks or on none."""
        if why := way.join(place):
            self._give_up(way, why)

    def _give_up(self, way: Way, why: str) -> None:
        """Go on without a way that was to be there, and say so once."""
        way.abort()
        way.why = why
        self.decisions.clear()
        _warn(way.name, why)

    def _end(self, why: str) -> None:
        """End what waits on the GPU for others, and, as the others wait for this rank, all."""
        self.abort()
        if self._comm._handle.open:
            self._comm._handle.abort(why)

    def close(self) -> None:
        """Leave NCCL's communicators when what was enqueued is done, or in a few seconds."""
        for way in self._ways.values():
            way.close()

    def abort(self) -> None:
        """End what NCCL has enqueued. From any thread."""
        for way in self._ways.values():
            way.abort()


def _refused(name: str, wanted: str, why: str) -> bool:
    if wanted:
        raise UnsupportedError(f"{name}: algorithm {wanted!r} cannot run here: {why}")
    return False


def _warn(way: str, why: str) -> None:
    what = {"nccl": "NCCL", "mixed": "NCCL within hosts"}[way]
    warnings.warn(f"arrays on GPUs go without {what}: {why}", TuningWarning, stacklevel=2)


def _told(call: GpuCall, way: str = "") -> str:
    """Return what the ranks agree on before a call of NCCL, which looks at nothing."""
    op = next(name for name, number in OPS.items() if number == call.op)
    fold = f", {op}" if call.kind in FOLDS else ""
    dtype = arrays.NAMES[call.source.dtype]
    by = "NCCL" if way != Mixed.name else "NCCL within hosts"
    return f"{call.kind} by {by} of {call.source.elements} {dtype}{fold}, root {call.root}"
