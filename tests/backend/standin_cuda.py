# SPDX-License-Identifier: Apache-2.0
"""In the place of torch.cuda: streams, events and tensors, of the emulated GPU.

What the emulated GPU is given it does as late as may be, so a tensor that is looked at on a stream
that does not come after a call has old bytes. Functions of torch that read or write elements come
after what is on the stream that is current for their thread, as on a GPU.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.distributed import distributed_c10d
from torch.utils._pytree import tree_map

from collectives._ffi import check, ffi, lib

DEFAULT = 1  # the default stream
POOL = 0x30  # that on which callbacks of futures run
# Of torch's functions those that read or write elements.
TOUCH = {"copy_", "cat", "reshape", "contiguous", "clone"}

place = 0  # the GPU of new tensors of this process
futures: list[Any] = []  # the devices that futures were made for
_taken: list[Any] = []  # memory: to give any back would do all that is still to be done
_streams = threading.local()
_empty = torch.empty
_new_future, _then = torch.futures.Future.__init__, torch.futures.Future.then


@cache
def library() -> Any:
    """Return the emulated GPU, as the process has it loaded."""
    return ctypes.CDLL(os.environ["COLLECTIVES_CUDA_LIBRARY"])


def _do(name: str, *arguments: Any) -> int:
    why = ctypes.create_string_buffer(1024)
    status = getattr(library(), f"coll_cuda_{name}")(0, *map(ctypes.c_void_p, arguments), why)
    assert status >= 0, why.value
    return int(status)


class Event:
    """A moment on a stream."""

    def __init__(self) -> None:
        found = ctypes.c_void_p()
        assert library().coll_cuda_event(0, ctypes.byref(found), None) == 0
        self.handle = found.value

    def query(self) -> bool:
        """Whether it has come; who asks twice makes it come."""
        return _do("reached", self.handle) == 1


class Stream:
    """A stream of a GPU."""

    def __init__(self, device: int, number: int) -> None:
        self.device, self.cuda_stream = torch.device("cuda", device), number

    def record_event(self) -> Event:
        """Return the moment that is now its last."""
        event = Event()
        _do("mark", event.handle, self.cuda_stream)
        return event

    def wait_event(self, event: Event) -> None:
        """Come after a moment."""
        _do("after", self.cuda_stream, event.handle)

    def synchronize(self) -> None:
        """Do all that is on it."""
        _do("synchronize", self.cuda_stream)


def current_stream(device: Any) -> Stream:
    """Return the current stream of this thread, in the place of torch's."""
    index = torch.device(device).index or 0
    found: Stream = getattr(_streams, f"of_{index}", None) or Stream(index, DEFAULT)
    return found


@contextmanager
def stream(given: Stream) -> Iterator[None]:
    """Make it the current one of its GPU in a block."""
    name = f"of_{given.device.index}"
    before = getattr(_streams, name, None)
    setattr(_streams, name, given)
    try:
        yield
    finally:
        setattr(_streams, name, before)


class GpuTensor(torch.Tensor):
    """A tensor in memory of the emulated GPU."""

    is_cuda = property(lambda _: True)
    is_cpu = property(lambda _: False)
    device = property(lambda _: torch.device("cuda", place))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do it on the current stream; what is new lies in memory of the GPU."""
        if func.__name__ in TOUCH:
            current_stream(torch.device("cuda", place)).synchronize()
        with torch._C.DisableTorchFunctionSubclass():
            return tree_map(_placed, func(*args, **kwargs or {}))


def _placed(made: Any) -> Any:
    if not isinstance(made, torch.Tensor) or isinstance(made, GpuTensor):
        return made
    pointer = ffi.cast("void *", made.data_ptr())
    if made.numel() and lib.coll_gpu_owner(pointer) < 0:
        return on_gpu(made)
    return made.as_subclass(GpuTensor)


def on_gpu(values: torch.Tensor) -> Any:
    """Return a copy in memory of the GPU, contiguous."""
    count = max(values.numel() * values.element_size(), 1)
    found = ffi.new("void **")
    check(lib.coll_gpu_allocate(place, count, found))
    _taken.append((place, found[0]))
    kept = torch.frombuffer(ffi.buffer(found[0], count), dtype=torch.uint8)
    with torch._C.DisableTorchFunctionSubclass():
        made = kept[: values.numel() * values.element_size()].view(values.dtype)
        made = made.view(values.shape)
        made.copy_(values)
        return made.as_subclass(GpuTensor)


def now(x: Any) -> torch.Tensor:
    """Return what lies there at this moment, whatever is still to be done."""
    with torch._C.DisableTorchFunctionSubclass():
        return x.as_subclass(torch.Tensor).clone()


def seen(x: Any) -> torch.Tensor:
    """Return what there is for whoever comes on the current stream."""
    current_stream(torch.device("cuda", place)).synchronize()
    return now(x)


def install(device: int) -> None:
    """Put it all in the place of torch's; tensors are on this GPU, and those before are gone."""
    global place
    while _taken:
        lib.coll_gpu_free(*_taken.pop())
    place = device
    torch.cuda.current_stream = current_stream
    torch.cuda.stream = stream
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    # Else a subclass would be asked instead of the group.
    vars(distributed_c10d)["has_torch_function"] = lambda _: False

    def empty(*shape: Any, **options: Any) -> Any:
        if torch.device(options.get("device") or "cpu").type != "cuda":
            return _empty(*shape, **options)
        return on_gpu(_empty(*shape, **{**options, "device": "cpu"}))

    def future(made: Any, *, devices: Any = ()) -> None:
        futures.append([*devices])
        _new_future(made)

    def then(made: Any, callback: Any) -> Any:
        def run(done: Any) -> Any:
            with stream(Stream(place, POOL)):
                return callback(done)

        return _then(made, run)

    torch.empty = empty
    torch.futures.Future.__init__ = future
    torch.futures.Future.then = then
