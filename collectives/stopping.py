# SPDX-License-Identifier: Apache-2.0
"""Signals while the native layer is busy: it asks whether to stop, and Python runs its handlers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from collectives._ffi import check, ffi, lib


class _Raised(threading.local):
    """What a handler raised while this thread was asked: a call of another one knows nothing.

    ``wanted``: an event that ends what the native layer does in this thread.
    """

    error: BaseException | None = None
    wanted: threading.Event | None = None


_raised = _Raised()


def _keep(_: Any, error: BaseException, __: Any) -> None:
    _raised.error = error


@ffi.def_extern(error=1, onerror=_keep)
def asked_to_stop(_: Any) -> int:
    """Let Python run its signal handlers, on entry: where one raises, what goes on ends."""
    wanted = _raised.wanted
    return int(wanted is not None and wanted.is_set())


def raise_what_came() -> None:
    """Raise what a signal handler raised during a call that asks to stop, if one did."""
    error, _raised.error = _raised.error, None
    if error is not None:
        raise error


def told(status: int) -> None:
    """Raise what a signal handler raised during a call that asks to stop, else what it returned."""
    raise_what_came()
    check(status)


def run_alone(function: Callable[..., int], *arguments: Any) -> None:
    """Run a native function that needs no communicator and may take long; raise as told() does."""
    lib.coll_work_stop_by(lib.asked_to_stop, ffi.NULL)
    try:
        status = function(*arguments)
    finally:
        lib.coll_work_stop_by(ffi.NULL, ffi.NULL)
    told(status)


@contextmanager
def ended_by(wanted: threading.Event) -> Iterator[None]:
    """End what this thread runs alone once an event is set: no signal handler runs in it."""
    _raised.wanted = wanted
    try:
        yield
    finally:
        _raised.wanted = None
