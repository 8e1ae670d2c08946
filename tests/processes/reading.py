# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_reading` do."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import collectives as cl

Array = npt.NDArray[np.uint8]
LONG = 9 << 20  # bytes of a vector that may be read
TURNS = 8  # in the first of which both ways are taken


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _may_read(pid: int, address: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    here, there = ctypes.create_string_buffer(8), _Iovec(address, 8)
    mine = _Iovec(ctypes.addressof(here), 8)
    got: int = libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(there), 1, 0)
    return got == 8


def allowed(comm: cl.Communicator) -> bool:
    """Tell whether the kernel lets all ranks read each other's memory."""
    x = np.zeros(1, np.int64)
    told = np.asarray(comm.allgather(np.array([os.getpid(), x.ctypes.data])))
    mine = all(_may_read(int(pid), int(at)) for pid, at in told.reshape(-1, 2))
    comm.barrier()  # until all have looked
    return bool(comm.allreduce(np.array([mine]), op="min")[0])


def _part(rank: int, n: int, turn: int) -> Array:
    return (np.arange(n) * (2 * rank + 3) + 5 * turn + rank).astype(np.uint8)


def _allgather(comm: cl.Communicator, in_place: bool) -> Iterator[tuple[Array, Array]]:
    n = LONG // comm.size
    out = np.zeros(n * comm.size, np.uint8)
    for turn in range(TURNS):
        own = _part(comm.rank, n, turn)
        if in_place:
            out[comm.rank * n : (comm.rank + 1) * n] = own
            own = out[comm.rank * n : (comm.rank + 1) * n]
        comm.allgather(own, out)
        yield out, np.concatenate([_part(r, n, turn) for r in range(comm.size)])


def _allgatherv(comm: cl.Communicator) -> Iterator[tuple[Array, Array]]:
    lengths = [LONG // comm.size + 4099 * r for r in range(comm.size)]
    for turn in range(TURNS):
        got = comm.allgatherv(_part(comm.rank, lengths[comm.rank], turn), counts=lengths)
        yield np.asarray(got), np.concatenate([_part(r, n, turn) for r, n in enumerate(lengths)])


def _alltoall(comm: cl.Communicator, in_place: bool) -> Iterator[tuple[Array, Array]]:
    p = comm.size
    n = LONG // p
    for turn in range(TURNS):
        rows = [_part(comm.rank * p + r, n, turn) for r in range(p)]
        given = np.stack(rows)
        got = given if in_place else np.zeros_like(given)
        comm.alltoall(given, got)
        yield got, np.stack([_part(r * p + comm.rank, n, turn) for r in range(p)])


def _allreduce(comm: cl.Communicator, in_place: bool) -> Iterator[tuple[Array, Array]]:
    out = np.zeros(LONG, np.uint8)
    for turn in range(TURNS):
        given = _part(comm.rank, LONG, turn)
        got = given if in_place else out
        comm.allreduce(given, got)
        parts = [_part(r, LONG, turn) for r in range(comm.size)]
        yield got, np.sum(parts, axis=0, dtype=np.uint8)


def moved() -> dict[str, Any]:
    """Move long vectors in all ways; tell by which modes, and which were wrong."""
    comm = cl.init(timeout=60)
    ways: dict[str, Callable[[cl.Communicator], Iterator[tuple[Array, Array]]]] = {
        "allgather": lambda group: _allgather(group, False),
        "allgather in place": lambda group: _allgather(group, True),
        "allgatherv": _allgatherv,
        "alltoall": lambda group: _alltoall(group, False),
        "alltoall in place": lambda group: _alltoall(group, True),
        "allreduce": lambda group: _allreduce(group, False),
        "allreduce in place": lambda group: _allreduce(group, True),
    }
    modes, wrong = dict[str, list[str]](), list[str]()
    for name, results in ways.items():
        group = comm.dup()  # which knows nothing of what was faster
        seen = set[str]()
        for got, wanted in results(group):
            assert group.last is not None
            seen.add(group.last.mode)
            if not np.array_equal(got, wanted):
                wrong.append(name)
        modes[name] = sorted(seen)
    crowded = len(os.sched_getaffinity(0)) < comm.size
    return {"modes": modes, "wrong": wrong, "allowed": allowed(comm), "crowded": crowded}


def denied() -> list[str]:
    """Move such vectors where one rank may not read; tell the modes."""
    if os.environ["COLLECTIVES_RANK"] == "1":
        os.environ["COLLECTIVES_FAULT"] = "process_vm_readv:1:EPERM:always"
    comm = cl.init(timeout=60)
    modes = set[str]()
    for got, wanted in _allgather(comm, False):
        assert np.array_equal(got, wanted)
        assert comm.last is not None
        modes.add(comm.last.mode)
    return sorted(modes)


def lost_on_the_way() -> str:
    """Lose the right to read after it was looked for; return what is told, "" where nothing is."""
    if os.environ["COLLECTIVES_RANK"] == "1":
        os.environ["COLLECTIVES_FAULT"] = "process_vm_readv:5:EFAULT:always"
    comm = cl.init(timeout=20)
    if not allowed(comm):
        return "not allowed"
    try:
        for got, wanted in _allgather(comm, False):  # of which the second is the first that reads
            assert np.array_equal(got, wanted)
    except cl.CollectiveError as error:
        return str(error)
    return ""


def killed() -> str:
    """Die while the others read; return what they are told."""
    comm = cl.init(timeout=20)
    if comm.rank == 1:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    x, out = np.ones(LONG, np.uint8), np.zeros(LONG * comm.size, np.uint8)
    begin = time.monotonic()
    try:
        while time.monotonic() < begin + 15:
            comm.allgather(x, out)
    except cl.PeerLostError as error:
        return str(error)
    return "nothing"
