# SPDX-License-Identifier: Apache-2.0
"""How a process ends: what is called then, and what the other ranks are told of it.

The children of multiprocessing end in a way of their own: those that were forked call nothing of
``atexit``, and their exceptions reach no hook. What they do call is called while the exception that
ended them is on its way.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from collectives.errors import CollectiveError

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_open: WeakKeyDictionary[Communicator, int] = WeakKeyDictionary()  # the process that made them
_registered: dict[Callable[[], None], int] = {}  # the process in which it was


def call_at_end(leave: Callable[[], None]) -> None:
    """Call something when this process ends, once or twice; registered by the first of calls."""
    if _registered.get(leave) == os.getpid():
        return
    _registered[leave] = os.getpid()
    atexit.register(leave)
    if _is_child():
        from multiprocessing.util import Finalize

        Finalize(None, leave, exitpriority=0)


def tell_at_end(comm: Communicator) -> None:
    """Abort it, if this process ends by an exception while it is open: the others quote that."""
    _open[comm] = os.getpid()
    call_at_end(_tell_all)


def _tell_all() -> None:
    why = why_it_ends()
    if why is None:
        return
    for comm, maker in list(_open.items()):
        with suppress(CollectiveError):  # it is closed
            if maker == os.getpid():
                comm.abort(why)


def why_it_ends() -> str | None:
    """Return by which exception the program ends, None where it ends well."""
    if hasattr(sys, "ps1"):  # at a prompt, errors are not the end
        return None
    error = getattr(sys, "last_value", None)
    if error is None and _is_child():
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit):
            if error.code in (None, 0):
                return None
            error = error.__context__ or error  # torch's spawn turns exceptions into exit codes
    if isinstance(error, SystemExit):
        return f"its program ended by SystemExit: {error.code}"
    if error is None:
        return None
    words = f": {error}" if str(error) else ""
    return f"its program ended by {type(error).__name__}{words}"


def _is_child() -> bool:
    processes: Any = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
