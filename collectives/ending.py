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

from collectives.cause import tell_collrun
from collectives.errors import CollectiveError

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_open: WeakKeyDictionary[Communicator, int] = WeakKeyDictionary()  # the process that made them
_leaves: dict[Callable[[], None], int] = {}  # the process in which it was registered
_ends_in: set[int] = set()  # the processes whose end is seen to


def call_at_end(leave: Callable[[], None]) -> None:
    """Call something when this process ends, once or twice, when all ranks have been told how."""
    _leaves[leave] = os.getpid()
    if os.getpid() in _ends_in:
        return
    _ends_in.add(os.getpid())
    atexit.register(_end)
    if _is_child():
        from multiprocessing.util import Finalize

        Finalize(None, _end, exitpriority=0)


def tell_at_end(comm: Communicator) -> None:
    """Abort it, if this process ends by an exception while it is open: the others quote that."""
    _open[comm] = os.getpid()
    call_at_end(_nothing_more)


def _end() -> None:
    """First all communicators are told: what is called then may close them, and wait for others."""
    error = _why_it_ends()
    if error is not None:
        tell_collrun(error)
        _tell_all(_in_words(error))
    for leave, process in reversed(list(_leaves.items())):
        if process == os.getpid():
            leave()


def _nothing_more() -> None:
    """Communicators that nobody else closes go with the process."""


def _tell_all(why: str) -> None:
    for comm, maker in list(_open.items()):
        with suppress(CollectiveError):  # it is closed
            if maker == os.getpid():
                comm.abort(why)


def _why_it_ends() -> BaseException | None:
    """Return by which exception the program ends, None where it ends well."""
    if hasattr(sys, "ps1"):  # at a prompt, errors are not the end
        return None
    error: BaseException | None = getattr(sys, "last_value", None)
    if error is None and _is_child():
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit):
            if error.code in (None, 0):
                return None
            error = error.__context__ or error  # torch's spawn turns exceptions into exit codes
    return error


def _in_words(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"its program ended by SystemExit: {error.code}"
    words = f": {error}" if str(error) else ""
    return f"its program ended by {type(error).__name__}{words}"


def _is_child() -> bool:
    processes: Any = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
