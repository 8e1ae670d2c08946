# SPDX-License-Identifier: Apache-2.0
"""Communicators of ranks that something else has brought together: MPI, or a store of torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from collectives.communicator import Communicator
from collectives.environment import Place, sensible_settings
from collectives.errors import CollectiveError, InvalidArgumentError
from collectives.launchers import meeting
from collectives.launchers.arrivals import noted
from collectives.launchers.attendance import Attendance
from collectives.launchers.detect import deadline_of, settings_of
from collectives.launchers.directory import Deadline, Directory, StoreDirectory
from collectives.launchers.mpi import MpiDirectory
from collectives.launchers.secret import file_secret_or_why_not
from collectives.launchers.torch_store import TorchStore
from collectives.launchers.transport import wished_or_why_not
from collectives.names import MOST_RANKS, integer
from collectives.start import join, waiting


def of_mpi(comm: Any, timeout: float | None) -> Communicator:
    """Return a communicator of the same ranks as one of mpi4py."""
    if not all(hasattr(comm, name) for name in ("Get_rank", "Allgatherv", "Is_inter")):
        raise InvalidArgumentError(
            f"from_mpi: comm is {_shown(comm)}: give a communicator of mpi4py, as MPI.COMM_WORLD"
        )
    if not comm:  # mpi4py's COMM_NULL: what a rank gets that is in no group of a split
        raise InvalidArgumentError("from_mpi: comm is COMM_NULL: this rank is none of its members")
    if comm.Is_inter():
        raise InvalidArgumentError(
            "from_mpi: comm is an intercommunicator, whose two groups count their ranks apart: "
            "merge them first (comm.Merge())"
        )
    rank, size = comm.Get_rank(), comm.Get_size()
    if size > MOST_RANKS:
        raise InvalidArgumentError(f"from_mpi: comm has {size} ranks, at most {MOST_RANKS} can be")
    directory = nullcontext(MpiDirectory(comm))
    return _met(directory, rank, size, timeout, deadline_of(_settings()[0], timeout))


def of_store(store: Any, rank: int, size: int, timeout: float | None) -> Communicator:
    """Return a communicator of ``size`` processes that share a store of torch."""
    wanting = [name for name in ("set", "get", "check", "add") if not hasattr(store, name)]
    if wanting:
        raise InvalidArgumentError(
            f"from_store: store is {_shown(store)} without {', '.join(wanting)}: give one of "
            "torch.distributed, as TCPStore or FileStore"
        )
    ranks, own = integer(size), integer(rank)
    if ranks is None or not 1 <= ranks <= MOST_RANKS:
        raise InvalidArgumentError(f"from_store: size is {size!r}: give 1 to {MOST_RANKS} ranks")
    if own is None or not 0 <= own < ranks:
        raise InvalidArgumentError(
            f"from_store: rank is {rank!r}: ranks count from 0 to {ranks - 1}, as size is {ranks}"
        )
    deadline = deadline_of(_settings()[0], timeout)
    return _met(_of_torch(store, own, ranks), own, ranks, timeout, deadline)


@contextmanager
def _of_torch(store: Any, rank: int, size: int) -> Iterator[Directory]:
    """Hold the directory of one meeting in a store; who comes twice is found meanwhile."""
    whole = TorchStore(store, "collectives/")
    # All ranks come equally often to one store, whatever else their processes meet for.
    times = whole.count(f"{size}.{rank}")

    def opened(number: int) -> TorchStore:
        return TorchStore(store, f"collectives/{size}.{number}/")

    attendance = Attendance(opened, times, rank, size)
    with noted(whole, rank, size, f"{size}.{times}/{attendance.end}"), attendance:
        yield StoreDirectory(opened(times), rank, size, attendance)


def _met(
    opening: AbstractContextManager[Directory],
    rank: int,
    size: int,
    timeout: float | None,
    deadline: Deadline,
) -> Communicator:
    env = os.environ
    settings, senseless = _settings()
    wish, trouble = wished_or_why_not(None, None, env, size)
    trouble = senseless or trouble
    if size == 1:
        if trouble is not None:
            raise trouble
        return join(Place(timeout=settings.timeout), timeout)
    secret, untold = file_secret_or_why_not(env)
    with waiting(deadline.seconds), opening as directory:
        job, wire = meeting.agree(
            directory, rank, size, deadline,
            variables=env, secret=secret, count=0, wish=wish, trouble=trouble or untold,
        )  # fmt: skip
    place = replace(settings, rank=rank, size=size, job=job, attempt=0, wire=wire)
    return join(place, timeout)


def _settings() -> tuple[Place, CollectiveError | None]:
    """Return what the environment says but for a place; and why one of them makes no sense."""
    env, trouble = sensible_settings(os.environ)
    return settings_of(env), trouble


def _shown(thing: object) -> str:
    return f"of type {type(thing).__name__}"
