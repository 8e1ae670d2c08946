# SPDX-License-Identifier: Apache-2.0
"""NCCL's communicators of the ranks of ours: made by all of them, or by none."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from collectives.errors import CollectiveError, CollectiveTimeoutError, UnsupportedError
from collectives.nccl.caller import OPEN
from collectives.nccl.config import Config
from collectives.nccl.start import init_rank, unique_id
from collectives.rivals.talk import told

if TYPE_CHECKING:
    from collectives import nccl
    from collectives.caller import Caller

_MEETING_S = 30.0  # for the ranks to meet in NCCL, and for it to set up what it needs
_LEAVING_S = 5.0  # for what was enqueued, when the communicator is closed
_YES, _NO, _LATE = b"\1", b"\0", b"\2"  # as a row begins; late: others have not come
_ID = 128
# Of all ranks of a GPU: they wait for each other on it, so they must be there at one time.
_BLOCKS = 64


class Joined(NamedTuple):
    """NCCL's communicator, which enqueues on one GPU; None: why there is none, on all ranks."""

    comm: nccl.Communicator | None
    why: str


def joined(comm: Caller, device: int, sharing: int, members: Sequence[int]) -> Joined:
    """Make that of ``members``, in their order, of which this rank is one.

    Every rank must call it, with its own group; on all of them it is there, or it is not.
    ``sharing``: so many ranks are on one GPU.
    """
    first = members[0]
    rows = told(comm, _offer() if comm.rank == first else _YES, "the id of an NCCL communicator")
    if why := _first_no(rows):
        return Joined(None, why)
    made, answer = _met(comm.rank, members, rows[first][1 : 1 + _ID], device, sharing)
    try:
        # Who failed at once waits here for those that wait for it in NCCL.
        patience = max(2 * _MEETING_S, comm._handle.timeout)
        why = _first_no(told(comm, answer, "whether NCCL has met", patience))
    except BaseException:
        abort(made)
        raise
    if why:
        abort(made)
        return Joined(None, why)
    return Joined(made, "")


def _offer() -> bytes:
    """Return the row of a first member: an id, or why there is none."""
    try:
        return _YES + unique_id()
    except Exception as error:  # whatever it is, the others wait for what this rank says
        return _refusal(error)


def _met(
    rank: int, members: Sequence[int], uid: bytes, device: int, sharing: int
) -> tuple[nccl.Communicator | None, bytes]:
    """Return this rank's communicator, and what it tells the others."""
    made = None
    config = Config(max_ctas=max(_BLOCKS // sharing, 1)) if sharing > 1 else None
    try:
        with _current(device):
            place = members.index(rank)
            made = init_rank(len(members), uid, place, config=config, timeout=_MEETING_S)
        if made.device != device:
            raise UnsupportedError(
                f"the arrays are on GPU {device}, and CUDA's current one is {made.device}: make "
                "theirs the current one before the first call"
            )
    except Exception as error:  # of CUDA's owner, too
        abort(made)
        return None, _refusal(error)
    return made, _YES


def _refusal(error: Exception) -> bytes:
    begin = _LATE if isinstance(error, CollectiveTimeoutError) else _NO
    return begin + str(error).encode("utf-8", "replace")


def _first_no(rows: list[bytes]) -> str:
    """Return which rank could not, and why; "": all could. Who only waited is not the cause."""
    for answer in (_NO, _LATE):
        for rank, row in enumerate(rows):
            if row[:1] == answer:
                return f"rank {rank}: {row[1:].rstrip(bytes(1)).decode('utf-8', 'replace')}"
    return ""


def _current(device: int) -> AbstractContextManager[Any]:
    """Make a GPU the current one of CUDA, by whoever has loaded it: NCCL takes that."""
    torch: Any = sys.modules.get("torch")
    cupy: Any = sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_initialized():
        made: AbstractContextManager[Any] = torch.cuda.device(device)
        return made
    if cupy is not None:
        of_cupy: AbstractContextManager[Any] = cupy.cuda.Device(device)
        return of_cupy
    return nullcontext()


def close(made: nccl.Communicator | None) -> None:
    """Leave when what was enqueued is done; what still waits for others then is ended."""
    if made is None or not _is_open(made):
        return
    made.timeout = _LEAVING_S
    with suppress(CollectiveError):  # it has aborted then: nobody is left to be told
        made.close()


def abort(made: nccl.Communicator | None) -> None:
    """End what waits on the GPU for other ranks, and leave."""
    if made is not None and _is_open(made):
        with suppress(CollectiveError):
            made.abort()


def _is_open(made: nccl.Communicator) -> bool:
    """Whether it is there: the end of the process may have come before, or a fork."""
    if made.closed:
        return False
    found = OPEN.get(made.handle)
    return found is not None and found[1] == os.getpid()
