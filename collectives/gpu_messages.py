# SPDX-License-Identifier: Apache-2.0
"""Arrays of a GPU in messages: they travel through a copy in memory of the host.

So messages have the same rules wherever their ends are: one of a GPU, the other of the host, in
another process or on another machine.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from collectives import arrays
from collectives._ffi import check, ffi, lib
from collectives.arrays import Array, Operand, itemsize, operand
from collectives.gpu_arrays import on_gpu
from collectives.gpu_streams import as_pointer, stream_of


class Staged:
    """What an array of a GPU is written back to, as other copies are (``arrays.delivered``)."""

    def __init__(self, of: Operand) -> None:
        """Of an array that is resolved."""
        self._of = of
        self.nbytes = of.elements * itemsize(of)

    def fetch(self) -> Any:
        """Return its bytes in memory of the host, once what is on its stream is done."""
        host = np.empty(self.nbytes, np.uint8)
        self._copy(ffi.from_buffer("char[]", host), self._of.pointer, self._of.stream)
        return host

    def copy_(self, host: Any) -> None:
        """Write it, on the stream that its owner works with now; what comes there sees it."""
        self._copy(self._of.pointer, ffi.from_buffer("char[]", host), stream_of(self._of.origin))
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(self._of.origin, torch.Tensor):
            arrays.written(self._of.origin)

    def _copy(self, to: Any, source: Any, stream: int) -> None:
        check(lib.coll_gpu_copy(self._of.device, to, source, self.nbytes, as_pointer(stream)))


def lent(x: Array, what: str) -> Operand:
    """Resolve an array of a message: of the host, or of a GPU by its copy.

    What is to be written is fetched, too: a message may be shorter than the array.
    """
    found = None if type(x) is np.ndarray else on_gpu(x, what)
    if found is None:
        return operand(x, what)
    staged = Staged(found)
    host = staged.fetch()
    return found._replace(
        pointer=ffi.from_buffer("char[]", host), array=host, packed=staged, device=-1, stream=0
    )
