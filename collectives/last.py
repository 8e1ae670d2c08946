# SPDX-License-Identifier: Apache-2.0
"""The last collective of a rank: what it was, how long it took, and how much of that it waited."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collectives._ffi import check, ffi, lib, text
from collectives.names import KIND_NAMES, MODES

if TYPE_CHECKING:
    from collectives.handle import Handle
    from collectives.rivals.explained import NcclTaken
    from collectives.sparse.calls import SparseTaken
    from collectives.sparse.plan import PlanTaken

MODE_NAMES = {code: name for name, code in MODES.items()} | {lib.COLL_MODE_AUTO: "wire"}
_WAYS = {0: "", lib.COLL_GPU_LAUNCH: "launch", lib.COLL_GPU_HOST: "host"}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class LastCall:
    """The last collective of this rank that is done: ``comm.last``.

    ``nbytes`` are those of the whole vector, of alltoall those that one rank hands in. ``seconds``
    it took on this rank, from the call to its end; ``waiting`` is the share of these, 0 to 1, in
    which it waited for other ranks. ``busbw``, bytes per second, is what the busiest link must
    have carried, as nccl-tests define it; NaN for a barrier. ``sequence`` is its number.

    The three are NaN where the call was not timed: one of fewer than 16384 elements, on one
    machine, before ``last`` was read for the first time.

    Of a sparse array ``kind`` is "sparse allreduce" and so on, of a plan's call "plan.reduce", by
    the plan's ``way``; ``mode`` is "messages", and ``nbytes`` what this rank sent in the call, in
    ``messages`` messages and ``rounds`` rounds after the one in which the ranks agreed (a plan's
    first round goes beside it); where it became a dense collective, algorithm "dense", the bytes
    are those of the vector, and the two are 0, as for all else. ``busbw`` and ``waiting`` are NaN.

    ``way`` is that of arrays on GPUs: "launch" where GPUs ran it, which is not timed, "nccl" where
    NCCL did, "mixed" where it did within hosts and ours between them (algorithm and mode are the
    same word; nor is that timed), or "host", through memory of the host, in so many ``blocks``, of
    which the first had this algorithm and mode; ``reason`` says why there was no launch. Of
    arrays of the host both are "".
    """

    kind: str
    algorithm: str
    mode: str
    nbytes: int
    seconds: float
    busbw: float
    waiting: float
    sequence: int
    rounds: int = 0
    messages: int = 0
    way: str = ""
    blocks: int = 0
    reason: str = ""

    def __str__(self) -> str:
        """Tell all of it in a line."""
        what = self.kind if self.kind == "barrier" else f"{self.kind} of {_amount(self.nbytes)}"
        how = f"{what} by {self.algorithm} ({self.mode})"
        if self.way == "launch":
            return f"{how} in a launch on the GPU, which is not timed"
        if self.way == "nccl":
            return f"{what} by NCCL, which is not timed"
        if self.way == "mixed":
            return f"{what} by NCCL within hosts and ours between them, which is not timed"
        if self.way == "host":
            blocks = f" in {self.blocks} blocks" if self.blocks > 1 else ""
            how = f"{how}, GPUs through memory of the host{blocks} ({self.reason})"
        if math.isnan(self.seconds):
            return f"{how}: not timed, the next one is"
        if self.mode == "messages":
            sent = f" in {self.messages} messages" if self.messages else ""
            return f"{how}{sent}: {self.seconds * 1e6:.4g} us"
        rate = "" if math.isnan(self.busbw) else f", busbw {self.busbw / 1e9:.3g} GB/s"
        return f"{how}: {self.seconds * 1e6:.4g} us{rate}, {self.waiting:.0%} waiting"


def bus_share(kind: str, ranks: int) -> float:
    """Return which part of a vector's bytes the busiest link carries, as nccl-tests define it.

    Scans, which nccl-tests lack, count as a vector that travels once.
    """
    rest = (ranks - 1) / ranks
    return {
        "allreduce": 2 * rest,
        "reduce_scatter": rest,
        "allgather": rest,
        "gather": rest,
        "scatter": rest,
        "alltoall": rest,
    }.get(kind, 1.0)


def algorithm_name(handle: Handle, number: int) -> str:
    """Return the name of an algorithm of the table, or of one that the program has given."""
    given = handle.given_names.get(number)
    if given is not None:
        return given
    record = ffi.new("coll_algorithm *")
    known = not lib.coll_algorithm_get(number, record)
    return text(record.name) if known else "schedule"


def last_call(handle: Handle) -> LastCall | None:
    """Return the last collective of a communicator; None where none is done, or it failed."""
    found = ffi.new("coll_last_call *")
    found.size = ffi.sizeof("coll_last_call")
    handle.call("last", lib.coll_last, found)
    if not handle.times_all:  # two readings of a clock are not little beside a small call
        with handle.held("last") as native:
            check(lib.coll_tell_times(native, lib.COLL_TIMES_OF_ALL))
        handle.times_all = True
    if found.kind < 0:
        return None
    sparse = _taken_of(handle, found.number)  # this is a part of it
    if sparse is not None:
        return sparse.told()
    kind = KIND_NAMES[found.kind]
    seconds = float(found.seconds) or math.nan
    moves = kind != "barrier" and seconds > 0
    rate = found.bytes / seconds * bus_share(kind, handle.size) if moves else math.nan
    return LastCall(
        kind=kind + ("v" if found.parts else ""),
        algorithm=algorithm_name(handle, found.algorithm),
        mode=MODE_NAMES[found.mode],
        nbytes=int(found.bytes),
        seconds=seconds,
        busbw=rate,
        waiting=found.waiting / seconds,
        sequence=int(found.number),
        way=_WAYS[found.way],
        blocks=int(found.blocks),
        reason=text(found.reason),
    )


def _taken_of(handle: Handle, number: int) -> SparseTaken | PlanTaken | NcclTaken | None:
    """Return what the sparse call, plan or call of NCCL of this number took."""
    taken = handle.taken_by_sparse
    if taken.sequence == number:
        from collectives.sparse.calls import SparseTaken

        return SparseTaken("allreduce", taken.view, taken.seconds, number, taken.dtype)
    if handle.taken_by_plan.sequence == number:
        from collectives.sparse.plan import taken_of

        return taken_of(handle.taken_by_plan)
    last = handle.last_taken
    return last if last is not None and last.sequence == number else None


def _amount(nbytes: int) -> str:
    """Return "8 bytes" or "1.5 MiB"."""
    power = max(0, min((nbytes.bit_length() - 1) // 10, len(_UNITS) - 1))
    return f"{nbytes / 1024**power:.4g} {_UNITS[power]}"
