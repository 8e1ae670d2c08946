# SPDX-License-Identifier: Apache-2.0
"""CuPy and torch, as far as tests of arrays on a GPU ask the same of both."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

NAMES = ("cupy", "torch")
LONG = 1 << 26  # elements: filling them takes the GPU longer than the host takes for a call


def owner(name: str) -> Owner:
    """Return one of them; the test is skipped where it is not installed, or sees no GPU."""
    module = pytest.importorskip(name)
    if name == "torch" and not module.cuda.is_available():
        pytest.skip("this torch sees no GPU")
    return Owner(name, module)


class Owner:
    """A framework: its arrays, streams and graphs."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.name, self.module = name, module
        self.is_torch = name == "torch"

    def array(self, values: Any) -> Any:
        """Return a copy of an array of NumPy on the GPU, made on the current stream."""
        if self.is_torch:
            return self.module.as_tensor(np.ascontiguousarray(values)).cuda()
        return self.module.asarray(values)

    def empty(self, count: int, dtype: str) -> Any:
        """Return an array of a dtype, by name."""
        if self.is_torch:
            return self.module.empty(count, dtype=getattr(self.module, dtype), device="cuda")
        return self.module.empty(count, dtype)

    def host(self, x: Any) -> Any:
        """Return a copy of NumPy's, after what is on the current stream."""
        if self.is_torch:
            return x.cpu().numpy()
        return self.module.asnumpy(x)

    def fill(self, x: Any, value: float) -> None:
        """Enqueue a value for all elements."""
        if self.is_torch:
            x.fill_(value)
        else:
            x[...] = value

    def stream(self) -> Any:
        """Return a new stream, which does not wait for the default one."""
        cuda = self.module.cuda
        return cuda.Stream() if self.is_torch else cuda.Stream(non_blocking=True)

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        """Make it the current stream of this thread in a block."""
        if self.is_torch:
            return self.module.cuda.stream(stream)  # type: ignore[no-any-return]
        return stream  # type: ignore[no-any-return]

    def dally(self, room: Any) -> None:
        """Keep the current stream busy for about a millisecond."""
        for value in range(8):
            self.fill(room, value)

    def captured(self, stream: Any, enqueue: Callable[[], None]) -> Callable[[], None]:
        """Capture what threads enqueue on a stream; return what replays it, and waits."""
        if self.is_torch:
            cuda = self.module.cuda
            graph = cuda.CUDAGraph()
            with cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
                enqueue()

            def replay() -> None:
                with cuda.stream(stream):
                    graph.replay()
                stream.synchronize()

            return replay
        runtime = importlib.import_module("cupy.cuda.runtime")
        with stream:
            stream.begin_capture(runtime.streamCaptureModeRelaxed)
            enqueue()
            graph = stream.end_capture()

        def launch() -> None:
            graph.launch(stream)
            stream.synchronize()

        return launch
