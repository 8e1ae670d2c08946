# SPDX-License-Identifier: Apache-2.0
"""The stream that a call is enqueued on."""

from __future__ import annotations

from typing import Any, TypeAlias

from collectives.errors import InvalidArgumentError
from collectives.gpu_streams import handle_of
from collectives.names import integer
from collectives.nccl.arrays import Operand

# None: that of the arrays' owner. An object with __cuda_stream__, one of torch or CuPy, a number.
Stream: TypeAlias = Any


def chosen(stream: Stream, call: str, *sides: Operand | None) -> int:
    """Return the ``cudaStream_t`` of a call.

    Without one it is the current stream of the arrays' owner, which must be one: arrays of two
    frameworks, each with a stream of its own, are not ordered after both.
    """
    if stream is None:
        streams = {side.stream for side in sides if side is not None and side.elements}
        if len(streams) > 1:
            raise InvalidArgumentError(
                f"{call}: the arrays' owners work on {len(streams)} streams: pass stream="
            )
        return streams.pop() if streams else 0
    number = integer(stream)  # as it is: 0 of a library that takes host arrays means "now"
    return number if number is not None and number >= 0 else handle_of(stream)
