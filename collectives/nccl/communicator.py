# SPDX-License-Identifier: Apache-2.0
"""The life of a communicator of NCCL: what comes of it, and its end."""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Iterable
from types import TracebackType
from typing import Any, TypeVar

from collectives.errors import InvalidArgumentError
from collectives.names import integer
from collectives.nccl.caller import OPEN, Origin, origin
from collectives.nccl.collectives import Collectives
from collectives.nccl.config import Config
from collectives.nccl.constants import DEFINED, MEMORY
from collectives.nccl.declarations import ffi
from collectives.nccl.memory import Memory
from collectives.nccl.operations import PreMulSum, dtype_name
from collectives.nccl.persistent import PersistentCalls

Self = TypeVar("Self", bound="Communicator")


class Communicator(Collectives, Memory):
    """One rank of a communicator of NCCL; :func:`init_rank` and :func:`init_all` make it.

    Calls are enqueued on a stream and return before they are done, as with NCCL itself. Use it with
    ``with``: the end of the block closes it, an exception in it aborts it, so that a kernel that
    waits for peers ends. A communicator that is not closed when the program ends is aborted.
    """

    def memory(self) -> dict[str, int]:
        """Return the bytes of GPU memory that NCCL holds for it, by kind. Since NCCL 2.29.7."""
        value, found = ffi.new("uint64_t *"), {}
        for name, number in MEMORY.items():
            self.finish("ncclCommMemStats", self.handle, number, value)
            found[name.removeprefix("ncclStatGpuMem").lower()] = int(value[0])
        return found

    # ---- others from it --------------------------------------------------------------------------

    @property
    def persistent(self) -> PersistentCalls:
        """Its collectives, whose arrays are looked at once for many calls."""
        return PersistentCalls(self)

    def pre_mul_sum(self, factor: Any, dtype: Any) -> PreMulSum:
        """Return a sum of values that are multiplied by ``factor`` first, an ``op`` for that dtype.

        ``factor`` is a number, or an array of one element on the GPU, which is read when the
        collective runs. Raises InvalidArgumentError for a dtype that NCCL does not have, and for a
        number that the dtype does not hold: of integers exactly, of floats within their range.
        """
        return PreMulSum(self, factor, dtype_name(dtype))

    def split(
        self, color: int | None, key: int = 0, config: Config | None = None
    ) -> Communicator | None:
        """Return the communicator of the ranks with the same color, in the order of key and rank.

        All ranks call it; who passes None for color is in none of them, and gets None. Without
        ``config`` it is as this one. In a group it is there when the group ends.
        """
        number = DEFINED["NCCL_SPLIT_NOCOLOR"] if color is None else integer(color)
        if number is None or (color is not None and number < 0) or integer(key) is None:
            raise InvalidArgumentError(
                f"split: color is {color!r} and key {key!r}: give integers, color not below 0, or "
                "None"
            )
        made = origin(self.library, config, self.blocking)
        self.finish(
            "ncclCommSplit", self.handle, number, integer(key), made.cell, made.struct, kept=made
        )
        return None if color is None else self._child(made)

    def shrink(
        self, exclude: Iterable[int], config: Config | None = None, *, abort: bool = False
    ) -> Communicator:
        """Return a communicator of the ranks that are not excluded. Since NCCL 2.27.

        Those that stay call it, with the same ranks to exclude, the others do not. ``abort=True``
        ends what is in progress first: for ranks that are dead.
        """
        wanted = list(exclude)
        ranks = [integer(one) for one in wanted]
        others = all(one is not None and 0 <= one < self.size for one in ranks)
        if not ranks or not others or self.rank in ranks:
            raise InvalidArgumentError(
                f"shrink: exclude is {wanted!r}: give other ranks than this one, 0 to "
                f"{self.size - 1}"
            )
        made, listed = origin(self.library, config, self.blocking), ffi.new("int[]", ranks)
        flags = DEFINED["NCCL_SHRINK_ABORT" if abort else "NCCL_SHRINK_DEFAULT"]
        self.finish(
            "ncclCommShrink", self.handle, listed, len(ranks), made.cell, made.struct, flags,
            kept=(*made, listed),
        )  # fmt: skip
        return self._child(made)

    def _child(self, made: Origin) -> Communicator:
        # It comes to be while its parent is in progress.
        return Communicator(self.library, made, self.timeout, self._pending, self)

    def suspend(self) -> None:
        """Give back memory of the GPU until :meth:`resume`. Since NCCL 2.29.7."""
        self.finish("ncclCommSuspend", self.handle, DEFINED["NCCL_SUSPEND_MEM"])

    def resume(self) -> None:
        """Take memory again that :meth:`suspend` has given back."""
        self.finish("ncclCommResume", self.handle)

    # ---- its end ---------------------------------------------------------------------------------

    def finalize(self) -> None:
        """Flush what was enqueued, on all ranks; then it can only be closed."""
        self.finish("ncclCommFinalize", self.handle)

    def revoke(self) -> None:
        """End what is in progress; then it can be split, shrunk and closed. Since NCCL 2.28.7."""
        self.finish("ncclCommRevoke", self.handle, DEFINED["NCCL_REVOKE_DEFAULT"])

    def close(self) -> None:
        """Wait for what was enqueued, and give it back; a second time it does nothing.

        All ranks close it. Where it does not block, ``timeout`` of the communicator counts.
        """
        if self.closed:
            return
        if not self.blocking:
            try:
                self.finalize()
                self.wait()
            except BaseException:
                self.abort()
                raise
        self._gone("ncclCommDestroy")

    def abort(self) -> None:
        """End what is in progress, whatever the other ranks do, and give it back."""
        if not self.closed:
            self._pending = ""
            self._gone("ncclCommAbort")

    def _gone(self, function: str) -> None:
        handle, self._handle, self._ended, self.busy = self._handle, 0, True, True
        OPEN.pop(handle, None)
        self.library.call(function, handle)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            warnings.warn(
                "a communicator of NCCL was not closed: use it with `with`, or close() it",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    def __reduce__(self) -> Any:
        raise TypeError("a communicator of NCCL cannot be copied or pickled: make another one")


def _abort_what_is_left() -> None:
    """Abort what the program has left open: to destroy it could wait for other ranks for ever."""
    for handle, (library, process) in list(OPEN.items()):
        if process == os.getpid():
            library.function("ncclCommAbort")(handle)
    OPEN.clear()


atexit.register(_abort_what_is_left)
