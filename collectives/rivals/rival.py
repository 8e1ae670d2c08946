# SPDX-License-Identifier: Apache-2.0
"""NCCL as a candidate for the calls of one communicator: asked once, measured, then chosen or not.

Everything here is decided alike on all ranks: by what is equal on all of them (kind, dtype, length,
operation, options), by what all have told, or by times that all know. Before each call of NCCL the
ranks agree on it, and on whether each can make it: NCCL itself looks at nothing, and waits for ever
for a rank that calls something else.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from collectives import arrays
from collectives._ffi import lib
from collectives.arrays import Operand
from collectives.errors import CollectiveError, InvalidArgumentError, UnsupportedError
from collectives.gpu_arrays import Place
from collectives.gpu_streams import as_pointer
from collectives.names import NCCL, OF_NCCL, OPS, Options
from collectives.nccl.versions import Version
from collectives.rivals import joined
from collectives.rivals.explained import NcclTaken
from collectives.rivals.fitting import FOLDS, Fit, arguments, fitting, lacks, lies_well, whole
from collectives.rivals.standing import LEAST, agreed
from collectives.rivals.talk import all_agree
from collectives.rivals.trial import Decision, NcclFailedError, is_captured, trial
from collectives.tuning.forced import ALGORITHM, wished_kinds, wished_of_nccl
from collectives.tuning.table import TuningWarning

if TYPE_CHECKING:
    from collectives import nccl
    from collectives.communicator import Communicator

_CAPTURED = "the stream is being captured into a graph: calls before it decide"
BUDGET_S = 2.0  # for all trials of a communicator
# Kind, dtype, and the bits of the number of bytes: lengths of a power of two share a choice.
Key = tuple[str, int, int]


class GpuCall(NamedTuple):
    """A call of arrays on a GPU, as ``Caller._request`` takes it."""

    kind: str
    source: Operand
    target: Operand | None
    options: Options
    op: int
    root: int
    length: int | None
    counts: Sequence[int] | None
    words: str = ""


class NcclRival:
    """What one rank knows of NCCL among the ranks of its communicator."""

    def __init__(self, comm: Communicator) -> None:
        """Know nothing yet: the first call that NCCL could make asks all ranks."""
        self._comm: Communicator = weakref.proxy(comm)  # which owns this, and ends when it is lost
        self.why: str | None = None  # why there is no NCCL; "": there is; None: nobody has asked
        self.version: Version = LEAST
        self._sharing = 1  # so many ranks on one GPU
        self.decisions: dict[Key, Decision] = {}
        self._spent = 0.0
        self._made: nccl.Communicator | None = None
        self._device = -1  # of all calls of NCCL
        words = os.environ.get(ALGORITHM, "")
        self._wished, self._others = wished_of_nccl(words), wished_kinds(words)

    def ran(self, name: str, place: Place, arguments_of: tuple[Any, ...]) -> bool:
        """Let NCCL make a call, if it is to; tell whether it has. Every rank must ask.

        ``arguments_of`` the call are those of ``Caller._request``.

        Raises UnsupportedError where the caller wants NCCL, and it cannot.
        """
        algorithm = arguments_of[3][0]
        wanted = algorithm == NCCL
        if not wanted and (self.why or algorithm != -1):
            return False
        call = GpuCall(*arguments_of)
        if not wanted and (call.kind not in OF_NCCL or self.closed_to(call.kind)):
            return False
        fit = self._fit(place, call)
        if isinstance(fit, str):
            return self._refused(name, wanted, fit)
        wished = wanted or self.wishes(call.kind)
        if not (wished or self._decided(place, call, fit).by_nccl):
            return False
        if self._made is None:
            if is_captured(place):
                return self._refused(name, wanted, _CAPTURED)
            if not self._join(place):
                return self._refused(name, wanted, self.why or "")
        if not self._agreed_on(place, call, fit):
            why = "on some rank arrays overlap, or are on another GPU than before"
            return self._refused(name, wanted, why)
        number = self._comm._handle.sequence
        try:
            self._enqueue(place, call, fit)
        except BaseException as error:  # the others have enqueued it, and would wait for this rank
            self._end(f"{name} by NCCL failed: {error}")
            raise
        taken = NcclTaken(call.kind, whole(call.source, call.target), number)
        self._comm._handle.last_taken = taken
        return True

    def closed_to(self, kind: str) -> str:
        """Return why a call that leaves its algorithm open is not NCCL's; "": it may be."""
        if self._comm._wished and kind in self._comm._wishes:
            return "another one is wished for by force()"
        if kind in self._others and kind not in self._wished:
            return f"another one is wished for by {ALGORITHM}"
        return ""

    def wishes(self, kind: str) -> bool:
        """Whether it is wished for by COLLECTIVES_ALGORITHM."""
        return kind in self._wished

    def _refused(self, name: str, wanted: bool, why: str) -> bool:
        if wanted:
            raise UnsupportedError(f"{name}: algorithm 'nccl' cannot run here: {why}")
        return False

    def _fit(self, place: Place, call: GpuCall) -> Fit | str:
        """Return how NCCL makes a call, or why it cannot, on all ranks alike."""
        fit = fitting(call.kind, call.source.dtype, call.op, call.options, call.counts)
        if isinstance(fit, str):
            return fit
        if self.why is None:
            self.why, self.version, self._sharing = agreed(self._comm, place.device)
            if self.why and call.kind in self._wished:
                self._warn()
        return self.why or lacks(fit, self.version) or fit

    def _decided(self, place: Place, call: GpuCall, fit: Fit) -> Decision:
        """Return who runs such calls, after a trial where there was none yet."""
        nbytes = whole(call.source, call.target)
        key = (call.kind, call.source.dtype, nbytes.bit_length())
        known = self.decisions.get(key)
        if known is not None:
            return known
        if is_captured(place):
            return Decision(False, _CAPTURED)
        if nbytes == 0:
            made = Decision(False, "there is nothing to move")
        elif self._spent >= BUDGET_S:
            made = self._nearest(key)
        elif self._made is None and not self._join(place):
            return Decision(False, self.why or "")
        else:
            made = self._tried(place, call, fit, nbytes)
        self.decisions[key] = made
        return made

    def _nearest(self, key: Key) -> Decision:
        """Return what was decided for the length that is nearest: time for trials is over."""
        alike = [
            (abs(other[2] - key[2]), other[2], found)
            for other, found in self.decisions.items()
            if other[:2] == key[:2] and found.pairs
        ]
        if not alike:
            return Decision(False, "time for trials was over, and none of such calls was measured")
        found = min(alike, key=lambda one: one[:2])[2]
        return replace(found, why=f"time for trials was over; nearby {found.why}", spent=0.0)

    def _tried(self, place: Place, call: GpuCall, fit: Fit, nbytes: int) -> Decision:
        comm = self._comm
        ours_options = (-1, *call.options[1:])

        def ours(source: Operand, target: Operand | None) -> bool:
            own = call._replace(source=source, target=target, options=ours_options)
            request, _kept = comm._request(*own)
            stream = as_pointer(place.stream)
            comm._handle.call(call.kind, lib.coll_gpu_run, request, place.device, stream)
            return True

        def theirs(source: Operand, target: Operand | None) -> bool:
            own = call._replace(source=source, target=target)
            try:
                ready = self._agreed_on(place, own, fit)
                self._enqueue(place, own, fit)
            except CollectiveError:
                return False
            return ready

        try:
            sides, words = (call.source, call.target), f"trial of {_told(call)}"
            made = trial(comm, place, sides, ours, theirs, nbytes, words)
        except NcclFailedError:  # which holds the arrays until what was enqueued on them is ended
            self._give_up("NCCL could not make a call on some rank")
            return Decision(False, self.why or "")
        self._spent += made.spent
        return made

    def _agreed_on(self, place: Place, call: GpuCall, fit: Fit) -> bool:
        """Tell whether all ranks make this call, and each can. Raises as a collective does."""
        comm = self._comm
        well = lies_well(fit, call.source, call.target, comm.rank, comm.size)
        words = f"{_told(call)} {call.words}"
        try:
            return all_agree(comm, place.device == self._device and well, words, call.options[2])
        except InvalidArgumentError:  # nothing was sent
            raise
        except CollectiveError:  # the communicator has failed: on the GPU nobody comes any more
            self.abort()
            raise

    def _enqueue(self, place: Place, call: GpuCall, fit: Fit) -> None:
        made = self._made
        assert made is not None
        passed = arguments(fit, call.source, call.target, call.root, self._comm.size)
        made.finish(fit.function, *passed, made.handle, place.stream)

    def _join(self, place: Place) -> bool:
        """Make NCCL's communicator, on all ranks or on none."""
        found = joined.joined(self._comm, place.device, self._sharing)
        if found.comm is None:
            self._give_up(found.why)
            return False
        self._made, self._device = found.comm, place.device
        return True

    def _give_up(self, why: str) -> None:
        """Go on without NCCL, which was to be there, and say so once."""
        joined.abort(self._made)
        self._made, self.why = None, why
        self.decisions.clear()
        self._warn()

    def _warn(self) -> None:
        warnings.warn(f"arrays on GPUs go without NCCL: {self.why}", TuningWarning, stacklevel=2)

    def _end(self, why: str) -> None:
        """End what waits on the GPU for others, and, as the others wait for this rank, all."""
        self.abort()
        if self._comm._handle.open:
            self._comm._handle.abort(why)

    def close(self) -> None:
        """Leave NCCL's communicator when what was enqueued is done, or in a few seconds."""
        made, self._made = self._made, None
        joined.close(made)

    def abort(self) -> None:
        """End what NCCL has enqueued. From any thread."""
        made, self._made = self._made, None
        joined.abort(made)


def _told(call: GpuCall) -> str:
    """Return what the ranks agree on before a call of NCCL, which looks at nothing."""
    op = next(name for name, number in OPS.items() if number == call.op)
    fold = f", {op}" if call.kind in FOLDS else ""
    dtype = arrays.NAMES[call.source.dtype]
    return f"{call.kind} by NCCL of {call.source.elements} {dtype}{fold}, root {call.root}"
