# SPDX-License-Identifier: Apache-2.0
"""NCCL from Python: a binding of the libnccl that is installed, of any version from 2.18 on.

::

    from collectives import nccl

    uid = nccl.unique_id()                       # on one rank, which hands it to the others
    with nccl.init_rank(size, uid, rank) as comm:
        comm.allreduce(x)                        # of CuPy or torch, on its current stream

docs/nccl.md. :mod:`collectives.nccl.raw` has the functions as they are in C.
"""

from collectives.nccl import raw
from collectives.nccl.communicator import Communicator
from collectives.nccl.config import Config
from collectives.nccl.errors import (
    NcclCudaError,
    NcclError,
    NcclInternalError,
    NcclInvalidArgumentError,
    NcclInvalidUsageError,
    NcclRemoteError,
    NcclSystemError,
    NcclTimeoutError,
)
from collectives.nccl.groups import Estimate, Group, group, simulate
from collectives.nccl.library import Library, load
from collectives.nccl.memory import Allocation, Registered, Window, allocate
from collectives.nccl.operations import PreMulSum
from collectives.nccl.persistent import PersistentCall, PersistentCalls
from collectives.nccl.start import init_all, init_rank, unique_id
from collectives.nccl.versions import Version

__all__ = [
    "Allocation",
    "Communicator",
    "Config",
    "Estimate",
    "Group",
    "Library",
    "NcclCudaError",
    "NcclError",
    "NcclInternalError",
    "NcclInvalidArgumentError",
    "NcclInvalidUsageError",
    "NcclRemoteError",
    "NcclSystemError",
    "NcclTimeoutError",
    "PersistentCall",
    "PersistentCalls",
    "PreMulSum",
    "Registered",
    "Version",
    "Window",
    "allocate",
    "group",
    "init_all",
    "init_rank",
    "load",
    "raw",
    "simulate",
    "unique_id",
]
