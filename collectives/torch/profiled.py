# SPDX-License-Identifier: Apache-2.0
"""Events for torch's profiler: ``collectives:all_reduce`` and so on, from the call to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch._C._autograd import (
    _record_function_with_args_enter,
    _record_function_with_args_exit,
)

if TYPE_CHECKING:
    from collectives.torch.work import Work

profiler_enabled = torch.autograd._profiler_enabled


class Event:
    """What the profiler shows of a call: its name, the shapes of its tensors, how long it took."""

    def __init__(self, name: str, tensors: Sequence[torch.Tensor]) -> None:
        """Begin."""
        self._handle = _record_function_with_args_enter(f"collectives:{name}", *tensors)
        self._over = threading.Event()

    def end(self) -> None:
        """End, on whatever thread."""
        _record_function_with_args_exit(self._handle)
        self._over.set()

    def wait(self) -> None:
        """Wait until it has ended: a profiler may stop as soon as the call has been waited for."""
        self._over.wait()


def recorded(name: str, tensors: Sequence[torch.Tensor], call: Callable[[], Work]) -> Work:
    """Make a call that takes these tensors as an event, which lasts until it is done."""
    event = Event(name, tensors)
    try:
        work = call()
    except BaseException:
        event.end()
        raise
    work.show(event)
    return work
