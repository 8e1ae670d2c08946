# SPDX-License-Identifier: Apache-2.0
"""How communicators begin: a unique id that all ranks have, or all GPUs of one process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from collectives.errors import CollectiveTimeoutError, InvalidArgumentError
from collectives.names import checked_seconds, integer
from collectives.nccl import find, groups
from collectives.nccl.caller import origin
from collectives.nccl.communicator import Communicator
from collectives.nccl.config import Config
from collectives.nccl.constants import DEFINED, IN_PROGRESS, SUCCESS
from collectives.nccl.declarations import ffi
from collectives.nccl.library import Library, load

_ID_BYTES = DEFINED["NCCL_UNIQUE_ID_BYTES"]


def unique_id(*, library: Library | None = None) -> bytes:
    """Return 128 bytes by which ranks find each other: one rank makes them, all others get them.

    The process that makes them listens until the ranks have met. No GPU is needed for it.
    """
    made = ffi.new("ncclUniqueId *")
    (library or load()).call("ncclGetUniqueId", made)
    return bytes(ffi.buffer(made, _ID_BYTES))


def init_rank(
    size: int,
    ids: Any,
    rank: int,
    *,
    config: Config | None = None,
    timeout: float | None = None,
    library: Library | None = None,
) -> Communicator:
    """Return this rank's communicator: all ``size`` ranks call it, each on its own GPU.

    Args:
        size: The number of ranks.
        ids: What one rank got from :func:`unique_id`: 128 bytes, or as many integers. A list of
            several lets large jobs begin faster (since NCCL 2.23); all ranks have the same.
        rank: The place of this one, 0 to ``size - 1``.
        config: How it is to be.
        timeout: Seconds for the ranks to meet, and for each later call to be enqueued. It makes a
            communicator that does not block, for NCCL cannot be interrupted else; what waits is
            this function, and each call.
        library: Another libnccl than that of :func:`load`.

    The GPU is CUDA's current one. In a group, which one thread with several GPUs needs, it is there
    when the group ends. Raises CollectiveTimeoutError when the time-out is over, and NcclError.
    """
    used = _alone(library)
    count, place = integer(size), integer(rank)
    if count is None or count < 1 or place is None or not 0 <= place < count:
        raise InvalidArgumentError(f"init_rank: rank is {rank!r} of {size!r}: give 0 to size - 1")
    if timeout is not None:
        checked_seconds("init_rank: timeout", timeout)
        if config is not None and config.blocking:
            raise InvalidArgumentError("init_rank: a timeout needs Config(blocking=False)")
        config = replace(config or Config(), blocking=False)
    made = origin(used, config)
    several = _several(ids)
    if several is None:
        identity = _identity(ids)
        if config is None:
            function, arguments = "ncclCommInitRank", [count, identity, place]
        else:
            function, arguments = "ncclCommInitRankConfig", [count, identity, place, made.struct]
    else:
        packed = ffi.new("ncclUniqueId[]", len(several))
        ffi.buffer(packed)[:] = b"".join(several)
        function = "ncclCommInitRankScalable"
        arguments = [count, place, len(several), packed, made.struct]
    code = used.function(function)(made.cell, *arguments)
    if code not in (SUCCESS, IN_PROGRESS):
        raise used.error(function, code)
    comm = Communicator(used, made, timeout, function if code == IN_PROGRESS else "")
    comm.told(place, count)
    if timeout is not None and groups.current() is None:
        _met(comm)
    return comm


def init_all(devices: int | Iterable[int], *, library: Library | None = None) -> list[Communicator]:
    """Return communicators for GPUs of this process, rank by rank: a number of them, or which.

    Raises InvalidArgumentError for what is no GPU's number, and NcclError.
    """
    used = _alone(library)
    listed = None if isinstance(devices, int) else [integer(one) for one in devices]
    count = integer(devices) if listed is None else len(listed)
    if not count or count < 1 or any(one is None or one < 0 for one in listed or ()):
        raise InvalidArgumentError(
            f"init_all: devices is {devices!r}: give how many GPUs, or which"
        )
    cells = ffi.new("uintptr_t[]", count)
    used.call("ncclCommInitAll", cells, count, ffi.NULL if listed is None else listed)
    made = []
    for rank in range(count):
        one = origin(used, None)
        one.cell[0] = cells[rank]
        made.append(Communicator(used, one, None))
        made[-1].told(rank, count)
    return made


def _alone(library: Library | None) -> Library:
    """Return the library to use, where no other copy of NCCL has come to this process."""
    used = library or load()
    find.refuse_others(used.path)
    return used


def _met(comm: Communicator) -> None:
    """Wait for the ranks; where they do not come, leave nothing behind."""
    try:
        comm.wait()
    except CollectiveTimeoutError as error:
        comm.abort()
        raise CollectiveTimeoutError(
            f"init_rank: not all {comm.size} ranks have come within {comm.timeout:g} s"
        ) from error
    except BaseException:
        comm.abort()
        raise


def _several(ids: Any) -> list[bytes] | None:
    """Return the bytes of several ids; None where it is one."""
    if isinstance(ids, (list, tuple)) and ids and integer(ids[0]) is None:
        return [_bytes(one) for one in ids]
    return None


def _identity(one: Any) -> Any:
    made = ffi.new("ncclUniqueId *")
    ffi.buffer(made)[:] = _bytes(one)
    return made[0]


def _bytes(one: Any) -> bytes:
    """Return the 128 bytes of an id, also of one that is written as integers, as CuPy does."""
    try:
        made = bytes(
            one
            if isinstance(one, (bytes, bytearray, memoryview))
            else [int(value) & 0xFF for value in one]
        )
    except (TypeError, ValueError):
        made = b""
    if len(made) != _ID_BYTES:
        raise InvalidArgumentError(
            f"init_rank: a unique id has {_ID_BYTES} bytes: pass what unique_id() gave on one rank"
        )
    return made
