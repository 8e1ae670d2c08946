# SPDX-License-Identifier: Apache-2.0
"""What is seen to when a process leaves torch's groups, so that it may enter others, or end."""

from __future__ import annotations

import os
import socket
import time
import weakref
from contextlib import suppress
from typing import Any

from torch import distributed

from collectives.communicator import Communicator
from collectives.ending import call_at_end
from collectives.errors import CollectiveError
from collectives.torch.work import COMPLETERS

_LONGEST = 0.25  # seconds; rank 0 may not be leaving at all
_AT_EXIT = 2.0  # seconds for callbacks of futures that are running

_open: weakref.WeakSet[Communicator] = weakref.WeakSet()


def see_to_exit(comm: Communicator) -> None:
    """Close it, where the process ends before.

    Nor is any thread in the middle of a C++ function of torch then: it would end the process with
    ``terminate called without an active exception``.
    """
    _open.add(comm)
    call_at_end(_leave)


def _leave() -> None:
    for comm in list(_open):
        with suppress(CollectiveError):
            comm.close()
    COMPLETERS.stop(_AT_EXIT)


def await_end_of_store(store: Any, rank: int) -> None:
    """Wait until rank 0, which leaves its default group as well, has closed torch's store.

    Else the next ``init_process_group`` of this process may find that store, at the same address,
    moments before it is gone. An agent's store, as torchrun has, stays; so does a file.
    """
    if rank == 0 or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return
    while isinstance(store, distributed.PrefixStore):
        store = store.underlying_store
    if not isinstance(store, distributed.TCPStore):
        return
    end, nap = time.monotonic() + _LONGEST, 5e-4
    with suppress(OSError):  # nobody answers: it is gone
        while time.monotonic() < end:
            socket.create_connection((store.host, store.port), timeout=nap + 0.05).close()
            time.sleep(nap)
            nap *= 2
