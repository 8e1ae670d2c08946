# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.hosts.test_mixed` do: NCCL within each of two hosts, ours over TCP.

GPUs are emulated, and this package's libnccl.so.2 stands in for NVIDIA's.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import collectives as cl
from collectives import nccl
from collectives.preloading import nccl_library
from collectives.rivals import standing
from tests.hosts.failing import note, told
from tests.processes.gpu import on
from tests.processes.nccl_choice import patch, refusal, sums, way
from tests.processes.nccl_mixed import _allgather, _allreduce, _broadcast, _reduce, _reduce_scatter


def begin(comm: cl.Communicator, library: str) -> None:
    """Give each rank a GPU, and what looks like NCCL."""
    os.environ["COLLECTIVES_CUDA_LIBRARY"] = library
    os.environ["EMULATED_FIRST_GPU"] = str(comm.rank)
    patch(standing, "uuid_of", lambda device: bytes([comm.rank]) * 16)
    nccl.load(str(nccl_library()), host_arrays=False)


def sums_and_moves(comm: cl.Communicator, library: str) -> dict[str, Any]:
    """Check all that two levels can do, over the hosts' real network; tell who the columns are."""
    begin(comm, library)
    wrong = []
    for n in (1, 1003, 300_001):
        for kind in (_allreduce, _allgather, _reduce_scatter):
            wrong += kind(comm, n, "f4")
        wrong += _broadcast(comm, n, "f4", 3) + _reduce(comm, n, "f4", 2)
    assert comm._nccl is not None
    column: Any = comm._nccl._ways["mixed"]
    found = (column._column.size, column._column.transport, column._members())
    return {"wrong": wrong, "way": way(comm), "column": found}


def in_turns(comm: cl.Communicator, library: str) -> dict[str, Any]:
    """Ranks are numbered from host to host: blocks do not lie host by host, sums do not care."""
    turned = comm.subgroup([0, 2, 1, 3])
    assert turned is not None
    begin(turned, library)
    wrong = sums(turned, algorithm="mixed")
    said = refusal(lambda: turned.allgather(on(np.zeros(1)), on(np.zeros(4)), algorithm="mixed"))
    return {"wrong": wrong, "said": said}


def uneven(comm: cl.Communicator, library: str) -> dict[str, Any]:
    """Two ranks of one host, one of the other."""
    three = comm.subgroup([0, 1, 2])
    if three is None:
        return {"wrong": [], "way": "mixed"}
    begin(three, library)
    wrong = []
    for n in (1, 1003, 300_001):
        wrong += _allreduce(three, n, "f4")
        for root in range(3):
            wrong += _broadcast(three, n, "f4", root) + _reduce(three, n, "f4", root)
    return {"wrong": wrong, "way": way(three)}


def loses_a_rank(comm: cl.Communicator, library: str) -> dict[str, Any]:
    """Wait for a rank that is killed."""
    begin(comm, library)
    wrong = sums(comm, algorithm="mixed")
    note(comm, "met")
    if comm.rank == comm.size - 1:
        time.sleep(60)
    x = on(np.ones(1000, "f4"))
    return {"wrong": wrong, **told(lambda: comm.allreduce(x, algorithm="mixed"))}
