# SPDX-License-Identifier: Apache-2.0
"""Signals while the native layer is busy: it asks whether to stop, and Python runs its handlers."""

from __future__ import annotations

import threading
from typing import Any

from collectives._ffi import check, ffi


class _Raised(threading.local):
    """What a handler raised while this thread was asked: a call of another one knows nothing."""

    error: BaseException | None = None


_raised = _Raised()


def _keep(_: Any, error: BaseException, __: Any) -> None:
    _raised.error = error


@ffi.def_extern(error=1, onerror=_keep)
def asked_to_stop(_: Any) -> int:
    """Let Python run its signal handlers, on entry: where one raises, what goes on ends."""
    return 0


def raise_what_came() -> None:
    """Raise what a signal handler raised during a call that asks to stop, if one did."""
    error, _raised.error = _raised.error, None
    if error is not None:
        raise error


def told(status: int) -> None:
    """Raise what a signal handler raised during a call that asks to stop, else what it returned."""
    raise_what_came()
    check(status)
