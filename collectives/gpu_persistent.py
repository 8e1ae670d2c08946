# SPDX-License-Identifier: Apache-2.0
"""Persistent calls of arrays on a GPU: prepared on the GPU once, then only enqueued."""

from __future__ import annotations

from typing import Any

from collectives import arrays
from collectives._ffi import ffi, lib
from collectives.arrays import Array, Operand
from collectives.caller import NOTHING, Caller
from collectives.errors import InvalidArgumentError
from collectives.exchanged import refuse_exchanged
from collectives.gpu_arrays import place_now
from collectives.gpu_streams import as_pointer, follow, lead
from collectives.operations import Operation
from collectives.persistent import PersistentCall


class GpuPersistentCall(PersistentCall):
    """A collective of arrays on a GPU that is made again and again.

    Making it is a collective, which takes all that later calls need on the GPU. To begin it only
    enqueues it, on the stream on which the arrays' owner works then: so a capture into a graph can
    take it, and ``wait()`` returns at once, since what comes on that stream comes after it.
    """

    __slots__ = ("_sides",)

    def __init__(
        self,
        comm: Caller,
        name: str,
        request: Any,
        kept: Any,
        sides: tuple[Operand | None, Operand | None],
        op: Operation | None,
    ) -> None:
        """Take over a ``coll_call`` and what it points to. ``Communicator.persistent`` does it."""
        self._sides = sides
        self._made_for(comm, name, kept, sides[1], op)
        place = ffi.new("coll_gpu_persistent **")
        device = place_now(name, *sides).device
        comm._call(name, lib.coll_gpu_persistent_new, request, device, place)
        self._native = place[0]
        self._handle.keep(self._native, lib.coll_gpu_persistent_free)

    def __call__(self) -> Array:
        """Begin it, and return the result array, which is there for what comes on the stream."""
        self.start()
        return self.wait()

    def start(self) -> None:
        """Begin it: when this returns it is enqueued, on all ranks."""
        if not self._native:
            self._refuse_freed()
        refuse_exchanged(self._name, self._tensors)
        device, stream, others = place_now(self._name, *self._sides)
        follow(device, stream, others)
        self._comm._call(
            self._name,
            lambda _: lib.coll_gpu_persistent_run(self._native, as_pointer(stream)),
        )
        lead(device, stream, others)

    def wait(self) -> Array:
        """Return the result array; nothing is waited for."""
        return self._result if self._target is None else arrays.delivered(self._target)

    def free(self) -> None:
        """Give up what the library keeps for it, but for what a graph may use."""
        native, self._native = self._native, NOTHING
        if native:
            self._handle.release(native)

    def _refuse_freed(self) -> None:
        if not self._handle.open:
            raise self._handle.gone(self._name)
        raise InvalidArgumentError(f"{self._name}: this persistent call was freed: make a new one")
