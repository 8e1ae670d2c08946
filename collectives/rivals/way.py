# SPDX-License-Identifier: Apache-2.0
"""What every way of NCCL has in common: it is made by all ranks or by none, and enqueues calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from collectives.arrays import Operand
from collectives.gpu_arrays import Place
from collectives.names import Options
from collectives.rivals import joined
from collectives.rivals.fitting import Fit, arguments, lacks, lies_well
from collectives.rivals.standing import Standing

if TYPE_CHECKING:
    from collectives import nccl
    from collectives.communicator import Communicator


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


class Way(ABC):
    """One way, of one rank. ``why`` it is not open to any call; "": it is.

    What it tells of calls, but for ``takes``, is the same on all ranks.
    """

    name: ClassVar[str]  # as ``algorithm=`` has it
    uncapturable: ClassVar[str] = ""  # why no call of it can be captured into a graph

    def __init__(self, comm: Communicator, standing: Standing, why: str) -> None:
        """Make nothing yet: the first call does. ``comm`` owns this."""
        self._comm, self._standing, self.why = comm, standing, why
        self._made: nccl.Communicator | None = None
        self._device = -1  # of all its calls

    @property
    def made(self) -> bool:
        """Whether NCCL's communicator is there."""
        return self._made is not None

    def lacks(self, fit: Fit) -> str:
        """Return why such calls cannot go this way; "": they can."""
        return self.why

    def join(self, place: Place) -> str:
        """Make it, on all ranks or on none; return why not, or ""."""
        found = joined.joined(self._comm, place.device, self._standing.sharing, self._members())
        if found.comm is None:
            return found.why
        self._made, self._device = found.comm, place.device
        return ""

    def takes(self, place: Place, call: GpuCall, fit: Fit) -> bool:
        """Whether this rank's arrays can go this way."""
        return place.device == self._device

    def close(self) -> None:
        """Leave when what was enqueued is done, or in a few seconds."""
        made, self._made = self._made, None
        joined.close(made)

    def abort(self) -> None:
        """End what was enqueued. From any thread."""
        made, self._made = self._made, None
        joined.abort(made)

    @abstractmethod
    def enqueue(self, place: Place, call: GpuCall, fit: Fit) -> None:
        """Make a call."""

    @abstractmethod
    def _members(self) -> Sequence[int]:
        """Return the ranks of this one's communicator of NCCL, in their order."""


CAPTURED = "the stream is being captured into a graph: calls before it decide"


class Whole(Way):
    """NCCL among all ranks."""

    name = "nccl"

    def __init__(self, comm: Communicator, standing: Standing) -> None:
        """Make nothing yet: the first call does."""
        super().__init__(comm, standing, standing.why_not)

    def lacks(self, fit: Fit) -> str:
        """Return why such calls cannot go this way; "": they can."""
        return self.why or lacks(fit, self._standing.version)

    def takes(self, place: Place, call: GpuCall, fit: Fit) -> bool:
        """Whether this rank's arrays can go this way."""
        comm = self._comm
        well = lies_well(fit, call.source, call.target, comm.rank, comm.size)
        return well and super().takes(place, call, fit)

    def enqueue(self, place: Place, call: GpuCall, fit: Fit) -> None:
        """Make a call."""
        made = self._made
        assert made is not None
        passed = arguments(fit, call.source, call.target, call.root, self._comm.size)
        made.finish(fit.function, *passed, made.handle, place.stream)

    def _members(self) -> Sequence[int]:
        return range(self._comm.size)
