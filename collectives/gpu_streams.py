# SPDX-License-Identifier: Apache-2.0
"""The streams of a GPU on which collectives are enqueued: of an array, or one that is given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from collectives._ffi import check, ffi, lib
from collectives.errors import InvalidArgumentError
from collectives.names import integer

LEGACY = 1  # cudaStreamLegacy: the default stream

_given: ContextVar[int | None] = ContextVar("collectives_stream", default=None)


@contextmanager
def on_stream(stream: Any) -> Iterator[None]:
    """Enqueue the collectives of arrays on a GPU that are called in this block on one stream.

    ``stream``: an object with ``__cuda_stream__``, a stream of torch or CuPy, a ``cudaStream_t``
    as a number, or None for the default stream. Without it that is the stream on which the
    arrays' owner works (the current one of torch or CuPy). Arrays that have nothing but DLPack
    are made ready for it by their owner; of all others the caller sees to it that what was
    enqueued elsewhere comes before. Raises InvalidArgumentError for what is no stream.
    """
    before = _given.set(handle_of(stream))
    try:
        yield
    finally:
        _given.reset(before)


@contextmanager
def on_owners_streams() -> Iterator[None]:
    """Enqueue those of this block where the arrays' owners work, whatever block is around it."""
    before = _given.set(None)
    try:
        yield
    finally:
        _given.reset(before)


def given_stream() -> int | None:
    """Return the stream of the block around this call; None outside one."""
    return _given.get()


def stream_of(array: Any) -> int:
    """Return the stream on which the owner of an array works now, or that of the block."""
    given = _given.get()
    if given is not None:
        return given
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return int(torch.cuda.current_stream(array.device).cuda_stream) or LEGACY
    shown = getattr(array, "__cuda_array_interface__", None) or {}
    return int(shown.get("stream") or LEGACY)


def handle_of(stream: Any) -> int:
    """Return the ``cudaStream_t`` of a stream, whoever's it is."""
    if stream is None:
        return LEGACY
    found: Any = stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, found = protocol() if callable(protocol) else protocol
        if version != 0:
            raise InvalidArgumentError(
                f"stream: {type(stream).__name__} has version {version} of __cuda_stream__, and "
                "only version 0 is known: pass the number of the stream"
            )
    else:
        for name in ("cuda_stream", "ptr"):  # torch's, CuPy's
            found = getattr(stream, name, found)
    number = integer(found)
    if number is None or number < 0:
        raise InvalidArgumentError(
            f"stream is {stream!r}: give an object with __cuda_stream__, a stream of torch or "
            "CuPy, or a cudaStream_t as a number"
        )
    return number or LEGACY


def follow(device: int, stream: int, others: tuple[int, ...]) -> None:
    """Let what is enqueued on a stream from now on come after what is on others now."""
    for other in others:
        check(lib.coll_gpu_follow(device, as_pointer(stream), as_pointer(other)))


def lead(device: int, stream: int, others: tuple[int, ...]) -> None:
    """Let what is enqueued on others from now on come after what is on a stream now."""
    for other in others:
        check(lib.coll_gpu_follow(device, as_pointer(other), as_pointer(stream)))


def as_pointer(stream: int) -> Any:
    """Return a stream as C takes it."""
    return ffi.cast("void *", stream)
