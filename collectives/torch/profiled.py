# SPDX-License-Identifier: Apache-2.0
"""Events for torch's profiler: ``collectives:all_reduce`` and so on, from the call to its end."""

from __future__ import annotations

from collections.abc import Callable

from torch.autograd.profiler import record_function

from collectives.torch.work import Work


def recorded(name: str, call: Callable[[], Work]) -> Work:
    """Make a call as an event, which lasts until it is done."""
    event = record_function(f"collectives:{name}")
    event.__enter__()
    try:
        work = call()
        if work.is_completed():
            event.__exit__(None, None, None)
        else:
            event._call_end_callbacks_on_future(work.get_future())
    except BaseException as error:
        event.__exit__(type(error), error, error.__traceback__)
        raise
    return work
