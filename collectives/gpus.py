# SPDX-License-Identifier: Apache-2.0
"""The GPUs that collectives can use."""

from __future__ import annotations

from dataclasses import dataclass

from collectives._ffi import check, ffi, lib, text


@dataclass(frozen=True)
class Device:
    """A GPU: its number, its name, compute capability, multiprocessors, and bytes of memory."""

    number: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int


class Devices(tuple[Device, ...]):
    """The GPUs, by number; where there is none, ``why`` says the reason."""

    why: str = ""


def devices() -> Devices:
    """Return the GPUs that collectives can use; of none, ``devices().why`` says why.

    They need the library of kernels, which is built apart (docs/gpu.md), and a driver.
    """
    why = ffi.new("char[]", 1024)
    count = int(lib.coll_gpu_count(why, len(why)))
    found = Devices(_device(number) for number in range(count))
    found.why = text(why)
    return found


def _device(number: int) -> Device:
    gpu = ffi.new("coll_gpu *", {"size": ffi.sizeof("coll_gpu")})
    check(lib.coll_gpu_get(number, gpu))
    capability = (gpu.major, gpu.minor)
    return Device(number, text(gpu.name), capability, gpu.multiprocessors, gpu.memory)
