# SPDX-License-Identifier: Apache-2.0
"""Memory that NCCL knows: registered buffers, windows that peers write to, and its own."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from collectives.errors import ClosedError, InvalidArgumentError
from collectives.names import integer
from collectives.nccl import calls
from collectives.nccl.arrays import Array
from collectives.nccl.caller import Caller
from collectives.nccl.constants import DEFINED
from collectives.nccl.declarations import ffi
from collectives.nccl.library import Library, load
from collectives.nccl.streams import Stream, chosen


class Registered:
    """Memory of an array that a communicator knows; ``close()`` or a ``with`` block ends it."""

    _ends_by = "ncclCommDeregister"

    def __init__(self, comm: Caller, cell: Any, array: Any) -> None:
        self._comm, self._array = comm, array
        self._cell: Any = cell  # NCCL may write to it later; None: closed

    @property
    def handle(self) -> int:
        """What NCCL calls it. Raises ClosedError where it was closed."""
        if self._cell is None or self._comm.closed:
            raise ClosedError("the memory is not registered any more")
        if self._comm.busy:
            self._comm.wait()
        return int(self._cell[0])

    def close(self) -> None:
        """End it; a second time it does nothing. It ends with its communicator, too."""
        if self._cell is not None and not self._comm.closed:
            self._comm.finish(self._ends_by, self._comm.handle, self.handle)
        self._cell = self._array = None

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Window(Registered):
    """Memory of an array that peers may write to: what ``comm.window(array)`` makes."""

    _ends_by = "ncclCommWindowDeregister"


class Memory(Caller):
    """What a communicator does with memory that it knows."""

    def register(self, array: Array) -> Registered:
        """Register the memory of an array, which then need not be copied. Since NCCL 2.19."""
        side, cell = calls.given(self, array, "register: array"), ffi.new("uintptr_t *")
        nbytes = side.elements * side.size
        self.finish("ncclCommRegister", self.handle, side.address, nbytes, cell)
        return Registered(self, cell, side.array)

    def window(self, array: Array, *, symmetric: bool = False) -> Window:
        """Open the memory of an array to the other ranks; all of them call it. Since NCCL 2.27.

        The array is of :func:`allocate`. ``symmetric=True``: it has one offset on all ranks, which
        NCCL's fastest kernels need.
        """
        side, cell = calls.given(self, array, "window: array", True), ffi.new("uintptr_t *")
        flags = DEFINED["NCCL_WIN_COLL_SYMMETRIC" if symmetric else "NCCL_WIN_DEFAULT"]
        nbytes = side.elements * side.size
        arguments = (self.handle, side.address, nbytes, cell, flags)
        self.finish("ncclCommWindowRegister", *arguments, kept=(cell,))
        return Window(self, cell, side.array)

    def put_signal(
        self,
        x: Array,
        peer: int,
        window: Window,
        *,
        offset: int = 0,
        signal: int = 0,
        context: int = 0,
        stream: Stream = None,
    ) -> None:
        """Write x into a peer's part of a window, ``offset`` bytes in, and signal it.

        Since NCCL 2.29.
        """
        side, number = calls.given(self, x, "put_signal: x"), self._peer("put_signal", peer)
        where = chosen(stream, "put_signal", side)
        self.finish(
            "ncclPutSignal", side.address, side.length, side.code, number, window.handle,
            _natural("put_signal: offset", offset), _natural("put_signal: signal", signal),
            _natural("put_signal: context", context), 0, self.handle, where, kept=(side.array,),
        )  # fmt: skip

    def signal(
        self, peer: int, *, signal: int = 0, context: int = 0, stream: Stream = None
    ) -> None:
        """Signal a peer, without data. Since NCCL 2.29."""
        numbers = (_natural("signal: signal", signal), _natural("signal: context", context))
        where = chosen(stream, "signal")
        self.finish("ncclSignal", self._peer("signal", peer), *numbers, 0, self.handle, where)

    def wait_signal(
        self,
        peers: Iterable[int],
        *,
        count: int = 1,
        signal: int = 0,
        context: int = 0,
        stream: Stream = None,
    ) -> None:
        """Let the stream wait until each of the peers has signalled ``count`` times. Since 2.29."""
        numbers = [self._peer("wait_signal", peer) for peer in peers]
        wanted = ffi.new("ncclWaitSignalDesc_t[]", len(numbers))
        for one, number in zip(wanted, numbers, strict=True):
            one.opCnt, one.peer = _natural("wait_signal: count", count), number
            one.sigIdx = _natural("wait_signal: signal", signal)
            one.ctx = _natural("wait_signal: context", context)
        where = chosen(stream, "wait_signal")
        self.finish("ncclWaitSignal", len(numbers), wanted, self.handle, where, kept=(wanted,))

    def _peer(self, call: str, peer: int) -> int:
        return calls.root_of(self, call, peer, "peer")


class Allocation:
    """Memory of NCCL's own: ``address`` and ``nbytes``; ``free()``, or a ``with`` block, ends it.

    It shows itself as an array of bytes, to CuPy (``cupy.asarray``), torch (``torch.as_tensor``)
    or, in memory of the host, NumPy (``numpy.asarray``), without a copy. Those arrays must not be
    used after it was freed; one that nobody holds any more is freed by itself.
    """

    def __init__(self, library: Library, nbytes: int) -> None:
        cell = ffi.new("uintptr_t *")
        library.call("ncclMemAlloc", cell, nbytes)
        self.address, self.nbytes = int(cell[0]), nbytes
        shown = {"data": (self.address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
        # An attribute by which others know where it is, so the other one must not be there.
        setattr(
            self, "__array_interface__" if _on_host(library) else "__cuda_array_interface__", shown
        )
        self._free = weakref.finalize(self, library.call, "ncclMemFree", self.address)
        self._free.atexit = False  # the driver may be gone by then, and takes it all

    def free(self) -> None:
        """Give it back; a second time it does nothing."""
        self._free()

    def __enter__(self) -> Allocation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.free()


def allocate(nbytes: int, *, library: Library | None = None) -> Allocation:
    """Return memory that NCCL needs no copies for: for windows and registered buffers.

    Since NCCL 2.19. It is on the current GPU; with a library that takes arrays of the host, and no
    driver, of the host. Raises InvalidArgumentError for a number of bytes that is not above 0.
    """
    wanted = _natural("allocate: nbytes", nbytes)
    if not wanted:
        raise InvalidArgumentError("allocate: nbytes is 0: give the number of bytes")
    return Allocation(library or load(), wanted)


def _on_host(library: Library) -> bool:
    if not library.host_arrays:
        return False
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        names = (os.path.basename(line.rstrip("\n")) for line in lines)
        return not any(name.startswith("libcuda.so") for name in names)


def _natural(what: str, value: object) -> int:
    number = integer(value)
    if number is None or number < 0:
        raise InvalidArgumentError(f"{what} is {value!r}: give an integer, 0 or more")
    return number
