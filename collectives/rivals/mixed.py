# SPDX-License-Identifier: Apache-2.0
"""A mixed hierarchy: NCCL among the ranks of each host, our schedules between hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from collectives import arrays
from collectives._ffi import ffi, lib
from collectives.arrays import Operand
from collectives.errors import CollectiveError
from collectives.gpu_arrays import Place
from collectives.gpu_memory import allocated
from collectives.gpu_streams import as_pointer
from collectives.names import AUTOMATIC
from collectives.nccl.groups import group
from collectives.rivals.fitting import Fit, address, lies_apart
from collectives.rivals.stages import IN_ORDER, KINDS, Across, Inside, Piece, Seat, scratch, stages
from collectives.rivals.way import GpuCall, Way

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.rivals.standing import Standing

_OF_OPERATION = ("ncclReduce", "ncclReduceScatter")
_OF_PEER = ("ncclReduce", "ncclBroadcast", "ncclSend", "ncclRecv")


class Mixed(Way):
    """NCCL within hosts, and ours among the ranks that have the same number there.

    Ranks with a number that a smaller host does not have form a group, too, which is not used.
    """

    name = "mixed"
    uncapturable = "what goes between hosts cannot be captured into a graph"

    def __init__(self, comm: Communicator, standing: Standing) -> None:
        """Make nothing yet: the first call does."""
        super().__init__(comm, standing, standing.why_not_mixed)
        self._hosts = standing.hosts
        self._column: Communicator | None = None
        self._scratch = Scratch()

    def lacks(self, fit: Fit) -> str:
        """Return why such calls cannot go this way; "": they can."""
        if self.why:
            return self.why
        if fit.kind not in KINDS:
            return f"there is no {fit.kind} in two levels"
        if fit.kind in IN_ORDER and not self._hosts.even:
            return "the hosts have different numbers of ranks"
        if fit.kind in IN_ORDER and not self._hosts.in_order:
            return "the ranks are not numbered host by host"
        return ""

    def join(self, place: Place) -> str:
        """Make it, on all ranks or on none; return why not, or ""."""
        comm = self._comm
        host, number = self._hosts.place(comm.rank)
        if why := super().join(place):
            return why
        try:
            made = comm._form("split", lib.coll_split, number, host, call=comm._handle.call)
        except CollectiveError as error:  # which all ranks get
            return f"ranks of several hosts cannot form a group: {error}"
        self._column = made
        return ""

    def takes(self, place: Place, call: GpuCall, fit: Fit) -> bool:
        """Whether this rank's arrays can go this way."""
        apart = fit.kind in IN_ORDER or lies_apart(call.source, call.target)
        return apart and super().takes(place, call, fit)

    def enqueue(self, place: Place, call: GpuCall, fit: Fit) -> None:
        """Make a call: stage after stage on its stream."""
        hosts = self._hosts
        host, number = hosts.place(self._comm.rank)
        seat = Seat(len(hosts.members), len(hosts.members[host]), host, number, hosts.columns)
        todo = stages(call.kind, seat, call.source.elements, hosts.place(call.root))
        size = arrays.SIZES[call.source.dtype]
        held = self._scratch.of(place, scratch(todo) * size)
        at = {
            "source": address(call.source),
            "target": 0 if call.target is None else address(call.target),
            "scratch": int(ffi.cast("uintptr_t", held)),
        }
        for stage in todo:
            if isinstance(stage, Across):
                self._between(place, call, stage, at)
            else:
                self._within(place, fit, stage, at, size)

    def _within(
        self, place: Place, fit: Fit, calls: Sequence[Inside], at: dict[str, int], size: int
    ) -> None:
        """Enqueue a group of NCCL."""
        made = self._made
        assert made is not None
        with group(made.library):
            for one in calls:
                ends = [at[p.array] + p.start * size for p in (one.source, one.target) if p]
                if one.function == "ncclReduce" and one.target is None:
                    ends.append(0)  # of no rank but the root
                passed = [*ends, one.elements * fit.unit, fit.dtype]
                passed += [fit.op] if one.function in _OF_OPERATION else []
                passed += [one.peer] if one.function in _OF_PEER else []
                made.finish(one.function, *passed, made.handle, place.stream)

    def _between(self, place: Place, call: GpuCall, stage: Across, at: dict[str, int]) -> None:
        """Make a call of ours among the ranks of the same number."""
        column = self._column
        assert column is not None
        options = (*AUTOMATIC[:2], call.options[2], *AUTOMATIC[3:])
        source = _operand(call.source, stage.source, at)
        target = None if stage.target is None else _operand(call.source, stage.target, at)
        request, _kept = column._request(
            stage.kind, source, target, options, call.op, stage.root, None, None, call.words
        )
        stream = as_pointer(place.stream)
        column._handle.call(call.kind, lib.coll_gpu_run, request, place.device, stream)

    def close(self) -> None:
        """Leave when what was enqueued is done, or in a few seconds."""
        super().close()
        column, self._column = self._column, None
        if column is not None:
            column.close()

    def abort(self) -> None:
        """End what was enqueued. From any thread."""
        super().abort()
        column, self._column = self._column, None
        if column is not None and not column.closed:
            column.abort("a call of NCCL within a host has failed, or another one between hosts")
            column.close()

    def _members(self) -> Sequence[int]:
        return self._hosts.members[self._hosts.place(self._comm.rank)[0]]


class Scratch:
    """Memory of a GPU for what stages hand to each other.

    It is in use until the stream of the call has got to its end: so another stream, or a longer
    call, gets another one, and to free the first waits for the GPU (as ``cudaFree`` does).
    """

    def __init__(self) -> None:
        """Have none."""
        self._held: Any = None
        self._nbytes, self._place = 0, (-1, 0)

    def of(self, place: Place, nbytes: int) -> Any:
        """Return so many bytes, which are there as long as what is returned; none: NULL."""
        if not nbytes:
            return ffi.NULL
        where = (place.device, place.stream)
        if nbytes > self._nbytes or where != self._place:
            self._held = None
            self._held = allocated(place.device, nbytes)
            self._nbytes, self._place = nbytes, where
        return self._held


def _operand(like: Operand, piece: Piece, at: dict[str, int]) -> Operand:
    """Return elements of one of a call's arrays."""
    start = at[piece.array] + piece.start * arrays.SIZES[like.dtype]
    return like._replace(pointer=ffi.cast("void *", start), elements=piece.elements)
