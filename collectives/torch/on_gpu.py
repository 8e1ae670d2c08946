# SPDX-License-Identifier: Apache-2.0
"""Tensors on a GPU: the streams on which a call is made, and what comes after it there.

A call is made on the streams that are current where the program calls, also by the communicator's
thread, whose own current streams are others. So what the backend copies before and after it is in
order by itself. Nothing else in this folder speaks to torch.cuda.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, TypeAlias

import torch

from collectives.gpu_streams import on_owners_streams

_NOTHING: AbstractContextManager[None] = nullcontext()


class Lane:
    """The stream of a GPU that a call is made on, and the place on it behind the call."""

    def __init__(self, stream: Any) -> None:
        """Take a stream of torch's; nothing is behind the call yet."""
        self.stream = stream
        self._mark: Any = None

    @property
    def device(self) -> torch.device:
        """The GPU."""
        return torch.device(self.stream.device)

    def mark(self) -> None:
        """Tell that the call is enqueued."""
        self._mark = self.stream.record_event()

    def lead(self) -> None:
        """Let what the GPU's current stream gets from now on come after the call.

        Of a call that left no mark, and is enqueued, all that the stream has now stands for it.
        """
        if self._mark is None:
            self.mark()
        torch.cuda.current_stream(self.device).wait_event(self._mark)

    def passed(self) -> bool:
        """Whether the GPU has done the call. Never waits."""
        return self._mark is None or bool(self._mark.query())

    def settle(self) -> None:
        """Wait, on the host, until the GPU has done what is on the stream."""
        self.stream.synchronize()


Lanes: TypeAlias = Sequence[Lane]


def lanes_of(*given: Iterable[Any]) -> Lanes:
    """Return the current stream of each GPU that some tensors are on; also of lists of tensors."""
    devices: dict[torch.device, None] = {}
    for some in given:
        _collect(some, devices)
    return [Lane(torch.cuda.current_stream(device)) for device in devices] if devices else ()


def lanes_on(device: torch.device | None) -> Lanes:
    """Return the current stream of a GPU; none for another device."""
    if device is None or device.type != "cuda":
        return ()
    return [Lane(torch.cuda.current_stream(device))]


def current(lanes: Lanes) -> AbstractContextManager[None]:
    """Make them, and their GPUs, the current ones of this thread in a block."""
    return _entered(lanes) if lanes else _NOTHING


def enqueued(lanes: Lanes, job: Callable[[], Any]) -> Callable[[], Any]:
    """Return a job that is made on these streams, and marked there when it is enqueued."""
    if not lanes:
        return job

    def run() -> Any:
        with _entered(lanes):
            result = job()
            for lane in lanes:
                lane.mark()
            return result

    return run


def future_on(lanes: Lanes) -> torch.futures.Future[Any]:
    """Return a future that may hold tensors of these GPUs, which it orders for who takes them."""
    devices = dict.fromkeys(lane.device for lane in lanes)
    return torch.futures.Future(devices=[*devices]) if devices else torch.futures.Future()


@contextmanager
def _entered(lanes: Lanes) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(on_owners_streams())
        for lane in lanes:
            stack.enter_context(torch.cuda.stream(lane.stream))
        yield


def _collect(given: Iterable[Any], devices: dict[torch.device, None]) -> None:
    for one in given:
        if not isinstance(one, torch.Tensor):
            _collect(one, devices)
        elif one.is_cuda:
            devices[one.device] = None
