# SPDX-License-Identifier: Apache-2.0
"""A process group of torch over a communicator."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from collectives.communicator import Communicator
from collectives.errors import CollectiveError, InvalidArgumentError
from collectives.torch.coalescing import Coalescing
from collectives.torch.exchanges import Exchanges
from collectives.torch.farewell import await_end_of_store, see_to_exit
from collectives.torch.gathers import Gathers
from collectives.torch.inner import DEVICES, Inner
from collectives.torch.messages import Messages
from collectives.torch.on_gpu import Lanes, enqueued, lanes_of, lanes_on
from collectives.torch.opaque import opaque
from collectives.torch.options import is_async, limits_of
from collectives.torch.profiled import profiler_enabled, recorded
from collectives.torch.reductions import Reductions
from collectives.torch.tensors import as_bytes, dense, plain
from collectives.torch.wording import in_torchs_words
from collectives.torch.work import Work

CALLS = (
    "allreduce",
    "allreduce_coalesced",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "_reduce_scatter_base",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor_coalesced",
    "broadcast",
    "allgather",
    "allgather_coalesced",
    "all_gather_single",
    "_allgather_base",
    "all_gather_single_coalesced",
    "allgather_into_tensor_coalesced",
    "gather",
    "scatter",
    "alltoall",
    "all_to_all_single",
    "alltoall_base",
    "barrier",
    "send",
    "recv",
    "recv_anysource",
    "recvAnysource",
)


@opaque(CALLS)
class CollectivesGroup(Reductions, Gathers, Exchanges, Coalescing, Inner, distributed.ProcessGroup):
    """The ranks of a group, as torch.distributed calls them. Torch makes these.

    All collectives of torch are here, by old and new names. Whatever torch would ask of a backend
    of C++ raises: no tensor goes another way.

    Attributes:
        communicator: The collectives of the group.
    """

    def __init__(
        self,
        communicator: Communicator,
        mail: Communicator,
        store: Any,
        name: str,
        seconds: float,
        *,
        default: bool = False,
    ) -> None:
        """Take over two communicators of the same ranks; the second one is for messages.

        `seconds`: so long a message may take; `default`: whether the store goes with the group.
        """
        rank, size = communicator.rank, communicator.size
        distributed.ProcessGroup.__init__(self, rank, size)
        self.communicator, self.store = communicator, store
        self._rank, self._size, self._seconds = rank, size, seconds
        self._messages, self._default = Messages(mail, seconds), default
        self._limit: dict[str, Any] = {}  # since set_timeout()
        self._name, self._desc = name, "undefined"
        self._splits: dict[str, int] = {}  # how often groups of these names were split off
        # DDP's join() counts ranks, and keeps of the call only the part that is C++: without the
        # rest, to wait for it would never end.
        self._counts: deque[Work] = deque(maxlen=64)
        # Torch reads from it which devices there are. Behind it is no backend of C++: what asks for
        # one, instead of this group, gets an error, and no tensor goes another way.
        for device in DEVICES:
            self._register_backend(
                torch.device(device), distributed.ProcessGroup.BackendType.CUSTOM
            )

    @classmethod
    def met(
        cls, store: Any, rank: int, size: int, seconds: float, name: str, *, default: bool = False
    ) -> CollectivesGroup:
        """Return the group of those ranks that meet in a store of torch's."""
        made: list[Communicator] = []
        try:
            # Messages have a communicator of their own: they go on while collectives do.
            for _ in range(2):
                made.append(Communicator.from_store(store, rank, size, seconds))
                see_to_exit(made[-1])
        except BaseException:
            for comm in made:
                comm.close()
            raise
        return cls(made[0], made[1], store, name, seconds, default=default)

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> CollectivesGroup | None:
        """Return a group of these ranks, which all call this; None where this is none of them.

        Torch's functions know it by no name, as none that a method of a group has made:
        ``torch.distributed.new_group`` makes one that they do.
        """
        members = [int(rank) for rank in ranks]
        if len({*members} & {*range(self._size)}) < max(len(members), 1):
            raise InvalidArgumentError(
                f"collectives.torch: split_group: ranks is {members}: give ranks of this group, "
                f"each once, from 0 to {self._size - 1}"
            )
        if opts is not None:
            raise InvalidArgumentError("collectives.torch: split_group: there are no opts")
        if self._rank not in members:
            return None
        name = group_name or f"{self._name} {members}"
        turn = self._splits[name] = self._splits.get(name, 0) + 1
        store = distributed.PrefixStore(f"split {name} {turn}", self.store)
        limits = limits_of(None, timeout).get("timeout", self._seconds)
        group = self.met(store, members.index(self._rank), len(members), limits, name)
        group._desc = group_desc or group._desc
        return group

    # ---- who it is ---------------------------------------------------------------------------

    def getBackendName(self) -> str:
        """Return the name by which programs ask for it."""
        return "collectives"

    def name(self) -> str:
        """Return the same."""
        return "collectives"

    def getRank(self) -> int:
        """Return this rank, among those of the group."""
        return self._rank

    def getSize(self) -> int:
        """Return the number of ranks."""
        return self._size

    def rank(self) -> int:
        """Return this rank, among those of the group."""
        return self._rank

    def size(self) -> int:
        """Return the number of ranks."""
        return self._size

    def setGroupName(self, name: str) -> None:
        """Keep the name by which functional collectives find the group."""
        self._name = name

    def getGroupName(self) -> str:
        """Return that name."""
        return self._name

    _set_group_name = setGroupName

    @property
    def group_name(self) -> str:
        """That name."""
        return self._name

    def setGroupDesc(self, description: str) -> None:
        """Keep what the program says of the group."""
        self._desc = description

    def getGroupDesc(self) -> str:
        """Return it."""
        return self._desc

    _set_group_desc = setGroupDesc

    @property
    def group_desc(self) -> str:
        """What the program says of the group."""
        return self._desc

    def get_group_store(self) -> Any:
        """Return the store in which the ranks met."""
        return self.store

    # ---- how calls are made ------------------------------------------------------------------

    def _start(
        self,
        name: str,
        job: Callable[[], Any],
        result: list[Any],
        opts: Any = None,
        takes: Sequence[torch.Tensor] | None = None,
        lanes: Lanes | None = None,
    ) -> Work:
        """Make a call now, or leave it to the communicator's thread.

        ``takes``: what the profiler shows the shapes of; None: the result. ``lanes``: on which
        streams; None: the current ones of the GPUs that the tensors are on.
        """
        if name != "all_reduce":  # which takes sparse tensors
            dense(name, result)
            dense(name, takes or ())
        on = lanes_of(takes or (), result) if lanes is None else lanes
        if profiler_enabled():
            shown = result if takes is None else takes
            return recorded(name, shown, lambda: self._make(name, job, result, opts, on))
        return self._make(name, job, result, opts, on)

    def _make(
        self, name: str, job: Callable[[], Any], result: list[Any], opts: Any, lanes: Lanes
    ) -> Work:
        comm, made = self.communicator, enqueued(lanes, job)
        if is_async(opts):
            work = Work(result, comm._submit(name, _without_gradients(made)), lanes)
            if name == "all_reduce" and result[0].numel() == 1:
                self._counts.append(work)
            return self._noted(work)
        try:
            comm._in_order(name, lambda: self._in_turn(made))
        except CollectiveError as error:
            in_torchs_words(error)
            raise
        return self._noted(Work(result, None, lanes))

    def _in_turn(self, job: Callable[[], Any]) -> Any:
        """Do a job when no other thread of the program does one on this group."""
        with self.communicator._turn:
            return job()

    def _watched(self, name: str, takes: Sequence[torch.Tensor], start: Callable[[], Work]) -> Work:
        """Make a call in a way of its own, as an event of the profiler if there is one."""
        return self._noted(recorded(name, takes, start) if profiler_enabled() else start())

    def barrier(self, opts: Any = None, timeout: timedelta | float | None = None) -> Work:
        """Wait until all ranks have come; with ``device_ids`` each first for that GPU's stream."""
        limits, lanes = self._limits(opts, timeout), lanes_on(getattr(opts, "device", None))

        def job() -> None:
            for lane in lanes:
                lane.settle()
            self.communicator.barrier(**limits)

        return self._start("barrier", job, [], opts, lanes=lanes)

    def monitored_barrier(
        self, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
    ) -> None:
        """Wait until all ranks have come; those that do not are named, as by every barrier here."""
        del wait_all_ranks
        self.barrier(timeout=timeout)

    # ---- messages ----------------------------------------------------------------------------

    def send(self, tensors: Sequence[torch.Tensor], rank: int, tag: int = 0) -> Work:
        """Send a tensor; the other rank receives it with the same tag."""
        x = _only(tensors)
        _check_tag("send", tag)
        return self._watched("send", [x], lambda: self._messages.send(x, rank, tag))

    def recv(self, tensors: Sequence[torch.Tensor], rank: int, tag: int = 0) -> Work:
        """Receive into a tensor."""
        x = _only(tensors)
        _check_tag("recv", tag)
        return self._watched("recv", [x], lambda: self._messages.receive(x, rank, tag))

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Work:
        """Receive from whoever sends first with this tag."""
        x = _only(tensors)
        _check_tag("recv", tag)
        return self._watched("recvAnySource", [x], lambda: self._messages.receive(x, None, tag))

    recvAnysource = recv_anysource

    # ---- its end -----------------------------------------------------------------------------

    def _get_sequence_number_for_group(self) -> int:
        return self.communicator.sequence

    def _set_sequence_number_for_group(self) -> None:
        """Nothing is to be agreed on: a communicator counts its calls."""

    def abort(self) -> None:
        """End the calls in flight on all ranks, with an error."""
        for comm in (self.communicator, self._messages.communicator):
            comm.abort("the program aborted its torch process group")

    def shutdown(self) -> None:
        """Leave the group, when the calls in flight are done; receives are given up."""
        self._messages.close()
        with suppress(CollectiveError):  # of a call whose Work tells it
            self.communicator._in_order("shutdown", lambda: None)
        self.communicator.close()
        if self._default:
            await_end_of_store(self.store, self._rank)

    # ---- its time-out ------------------------------------------------------------------------

    def set_timeout(self, timeout: timedelta) -> None:
        """Set for how long calls and messages of this rank may take that begin from now on."""
        limit = limits_of(None, timeout)
        if not limit:
            raise InvalidArgumentError(
                f"collectives.torch: set_timeout: {timeout} is no time above 0"
            )
        self._limit, self._seconds = limit, limit["timeout"]
        self._messages.set_timeout(self._seconds)

    _set_default_timeout = set_timeout

    def _limits(self, opts: Any, timeout: timedelta | float | None = None) -> dict[str, Any]:
        """Return the time-out of a call as its keyword; nothing where it is the communicator's."""
        return limits_of(opts, timeout) or self._limit


def monitored_barrier(
    group: Any = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait for all ranks; those that do not come are named. Ranks outside the group go on.

    As torch.distributed.monitored_barrier, which torch allows for gloo only. Every barrier of this
    library names the ranks that are missing, whatever ``wait_all_ranks`` is.
    """
    del wait_all_ranks
    if group is distributed.GroupMember.NON_GROUP_MEMBER:
        return
    from collectives.torch.creation import communicator_of

    communicator_of(group)  # refuses one of another backend
    found = distributed.group.WORLD if group is None else group
    found.monitored_barrier(timeout)


def _without_gradients(job: Callable[[], Any]) -> Callable[[], Any]:
    """Return a job for another thread: autograd may mark its tensors while it is in flight."""

    def run() -> Any:
        with torch.no_grad():
            return job()

    return run


def _only(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if len(tensors) != 1:
        raise InvalidArgumentError(
            f"collectives.torch: a message is one tensor, not {len(tensors)}"
        )
    return as_bytes(plain(tensors[0]))


def _check_tag(call: str, tag: int) -> None:
    """Refuse in the call what no message has; a receive would take it for any tag."""
    if tag < 0:
        raise InvalidArgumentError(f"{call}: tag is {tag}: give a number from 0 to 2147483647")
