# SPDX-License-Identifier: Apache-2.0
"""Registered memory, windows and signals, and memory of NCCL's own."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectives import nccl
from collectives.errors import ClosedError, InvalidArgumentError, UnsupportedError
from collectives.nccl.versions import Version
from tests.nccl.standin import Standin

X = np.ones(3)


def test_registered_memory(standin: Standin, third: nccl.Communicator) -> None:
    at = f"{X.ctypes.data:#x}"
    with third.register(X) as registered:
        assert registered.handle == X.ctypes.data
    registered.close()
    with pytest.raises(ClosedError, match="not registered any more"):
        registered.handle  # noqa: B018  it is asked for, no more
    assert standin.log() == [f"ncclCommRegister {at} 24", f"ncclCommDeregister {at}"]


def test_windows_and_signals(standin: Standin, third: nccl.Communicator) -> None:
    at = f"{X.ctypes.data:#x}"
    with third.window(X, symmetric=True) as window:
        third.put_signal(X[:1], 1, window, offset=16, signal=2, context=1, stream=4)
        third.signal(3, signal=1)
        third.wait_signal([0, 1], count=2, stream=5)
    assert standin.log() == [
        f"ncclCommWindowRegister {at} 24 flags 1",
        f"ncclPutSignal {at} 1 dtype 8 peer 1 window {at} offset 16 signal 2 context 1 flags 0 "
        "stream 0x4",
        "ncclSignal peer 3 signal 1 context 0 flags 0 stream 0",
        "ncclWaitSignal count 2 peer 0 signal 0 context 0 stream 0x5",
        "ncclWaitSignal count 2 peer 1 signal 0 context 0 stream 0x5",
        f"ncclCommWindowDeregister {at}",
    ]
    with pytest.raises(InvalidArgumentError, match="put_signal: offset is -1"):
        third.put_signal(X, 1, third.window(X), offset=-1)


def test_memory_of_nccls_own(standin: Standin) -> None:
    with nccl.allocate(64) as memory:
        array: Any = np.asarray(memory)
        assert (array.dtype, array.shape, array.ctypes.data) == (np.uint8, (64,), memory.address)
        array[:] = 3
        assert array.sum() == 192
        del array
    left = nccl.allocate(8)
    address = left.address
    del left
    gc.collect()
    log = standin.log()
    assert log[0] == "ncclMemAlloc 64"
    assert log[-1] == f"ncclMemFree {address:#x}"
    assert len(log) == 4
    for wrong in (0, -1, "8"):
        with pytest.raises(InvalidArgumentError, match="allocate: nbytes is"):
            nccl.allocate(wrong)  # type: ignore[arg-type]


@pytest.mark.usefixtures("nothing_loaded")
def test_a_library_without_them_says_so(tmp_path: Path) -> None:
    library = Standin(tmp_path / "libold.so", Version(2, 18, 3)).library
    with pytest.raises(UnsupportedError, match=r"ncclMemAlloc came with NCCL 2.19.0"):
        nccl.allocate(8, library=library)
    with (
        nccl.init_rank(1, bytes(128), 0, library=library) as comm,
        pytest.raises(UnsupportedError, match=r"ncclCommWindowRegister came with NCCL 2.27.0"),
    ):
        comm.window(X)
