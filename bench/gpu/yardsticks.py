# SPDX-License-Identifier: Apache-2.0
"""The library of yardsticks (yardsticks.h), opened: one GPU to fill, copy, capture and time on."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_VECTORS = 8
Bytes = npt.NDArray[Any]


class GpuError(Exception):
    """What the GPU, or its driver, says went wrong."""


class _Sentence(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 256)]


class _Facts(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 128),
        *((name, ctypes.c_int32) for name in ("driver", "runtime", "multiprocessors", "clock_mhz",
                                              "memory_clock_mhz", "bus_bits")),
        *((name, ctypes.c_uint64) for name in ("memory", "free", "cache")),
    ]  # fmt: skip


class _Vectors(ctypes.Structure):
    _fields_ = [
        ("ranks", ctypes.c_int32),
        ("narrow", ctypes.c_int32),
        ("n", ctypes.c_uint64),
        ("inputs", ctypes.c_void_p * MOST_VECTORS),
        ("outputs", ctypes.c_void_p * MOST_VECTORS),
    ]


class Vectors:
    """The inputs and outputs of an allreduce of float32 or (``narrow``) bfloat16, by address."""

    def __init__(
        self, n: int, inputs: Sequence[int], outputs: Sequence[int], narrow: bool = False
    ) -> None:
        self.n, self.narrow = n, narrow
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.native = _Vectors(len(self.inputs), int(narrow), n)
        self.native.inputs[: len(self.inputs)] = self.inputs
        self.native.outputs[: len(self.outputs)] = self.outputs


class Graph:
    """What was captured, of so many calls; ended with its owner."""

    def __init__(self, yard: Yardsticks, native: int, calls: int) -> None:
        self.calls = calls
        self._yard, self._native = yard, native

    def seconds(self, times: int = 1) -> float:
        """Run it so often, one after another, and wait; return the GPU's time for one call."""
        found = ctypes.c_double()
        self._yard.call("replay", self._native, times, self._yard.stream, ctypes.byref(found))
        return found.value / (times * self.calls)

    def close(self) -> None:
        """Free it."""
        self._yard.forget("end_graph", self._native)


class Yardsticks:
    """One GPU, and a stream of its own."""

    def __init__(self, library: Path, device: int = 0) -> None:
        """Open the library; raise GpuError where there is none or no such GPU."""
        try:
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise GpuError(f"the library of yardsticks cannot be opened ({error})") from None
        self.device = device
        self._keep_types()
        made = ctypes.c_void_p()
        self.stream = 0
        self.call("stream", ctypes.byref(made))
        self.stream = int(made.value or 0)

    def _keep_types(self) -> None:
        pointer, number, word = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64
        arguments: dict[str, list[Any]] = {
            "facts": [pointer],
            "stream": [pointer],
            "synchronize": [],
            "write": [pointer, pointer, word],
            "read": [pointer, pointer, word],
            "copy": [pointer, pointer, word, pointer],
            "poison": [pointer, word, pointer],
            "fill": [pointer, word, number, word, pointer],
            "fused": [pointer, pointer],
            "nothing": [number, pointer],
            "ping_pong": [pointer, word, pointer],
            "wrong": [pointer, pointer, pointer],
            "capture": [pointer],
            "captured": [pointer, pointer],
            "replay": [pointer, number, pointer, pointer],
        }
        for name, types in arguments.items():
            function = getattr(self._library, f"yard_{name}")
            function.argtypes, function.restype = [number, *types, pointer], number
        for name in ("end_stream", "end_graph"):
            function = getattr(self._library, f"yard_{name}")
            function.argtypes, function.restype = [number, pointer], None

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of yardsticks.h; raise GpuError with its sentence."""
        why = _Sentence()
        if getattr(self._library, f"yard_{name}")(self.device, *arguments, ctypes.byref(why)):
            raise GpuError(why.text.decode("utf-8", "replace"))

    def forget(self, name: str, native: int) -> None:
        """Call one of those that end something."""
        getattr(self._library, f"yard_{name}")(self.device, native)

    def close(self) -> None:
        """End the stream."""
        self.forget("end_stream", self.stream)

    def facts(self) -> dict[str, str | int]:
        """Return name, versions of CUDA, clocks and memory of the GPU."""
        found = _Facts()
        self.call("facts", ctypes.byref(found))
        numbers = [field[0] for field in _Facts._fields_ if field[0] != "name"]
        return {"gpu": found.name.decode(), **{name: getattr(found, name) for name in numbers}}

    def write(self, at: int, values: Bytes) -> None:
        """Copy an array of the host to the GPU."""
        values = np.ascontiguousarray(values)
        if values.nbytes:
            self.call("write", at, values.ctypes.data, values.nbytes)

    def read(self, at: int, like: Bytes) -> Bytes:
        """Fill an array of the host from the GPU's memory, and return it."""
        if like.nbytes:
            self.call("read", like.ctypes.data, at, like.nbytes)
        return like

    def copy(self, to: int, source: int, nbytes: int) -> None:
        """Enqueue a copy on the GPU."""
        self.call("copy", to, source, nbytes, self.stream)

    def poison(self, at: int, nbytes: int) -> None:
        """Enqueue bytes of ones: no number in any float."""
        if nbytes:
            self.call("poison", at, nbytes, self.stream)

    def fill(self, at: int, n: int, narrow: bool, seed: int) -> None:
        """Enqueue random numbers in [-1, 1)."""
        self.call("fill", at, n, int(narrow), seed, self.stream)

    def fused(self, vectors: Vectors) -> None:
        """Enqueue the sum by hand; of 2, 4 or 8 float32 vectors of a multiple of 4 elements."""
        self.call("fused", ctypes.byref(vectors.native), self.stream)

    def nothing(self, blocks: int) -> None:
        """Enqueue blocks that do nothing."""
        self.call("nothing", blocks, self.stream)

    def ping_pong(self, words: int, turns: int) -> None:
        """Enqueue a flag that two blocks pass, 2 ``turns`` times; ``words``: 256 bytes."""
        self.call("ping_pong", words, turns, self.stream)

    def wrong(self, vectors: Vectors) -> int:
        """Return how many elements of the outputs are not the sum of the inputs."""
        found = ctypes.c_uint64()
        self.call("wrong", ctypes.byref(vectors.native), ctypes.byref(found), self.stream)
        return int(found.value)

    def synchronize(self) -> None:
        """Wait for all that is enqueued."""
        self.call("synchronize")

    @contextmanager
    def capture(self, calls: int = 1) -> Iterator[list[Graph]]:
        """Keep what is enqueued on the stream instead of running it, as the graph in the list."""
        found: list[Graph] = []
        self.call("capture", self.stream)
        native = ctypes.c_void_p()
        try:
            yield found
        finally:
            self.call("captured", self.stream, ctypes.byref(native))
        found.append(Graph(self, int(native.value or 0), calls))
