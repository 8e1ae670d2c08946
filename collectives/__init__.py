# SPDX-License-Identifier: Apache-2.0
"""Collectives among processes or threads, of one machine or several: allreduce and its family.

::

    import numpy as np
    import collectives as cl

    comm = cl.init()                    # started by: collrun -n 4 program.py
    x = np.full(3, comm.rank, "float32")
    cl.allreduce(x)                     # in place: [6. 6. 6.] on every rank

Every algorithm is data: :func:`algorithms` lists them, :func:`verify` proves them,
:func:`schedule` and :func:`draw` show them, :func:`simulate` says how long they take elsewhere.
"""

import os as _os
import typing as _typing
from _thread import RLock as _RLock
from importlib import import_module as _import_module

from collectives._ffi import lib as _lib
from collectives._ffi import text as _text
from collectives.errors import (
    AbortedError,
    BootstrapError,
    ClosedError,
    CollectiveError,
    CollectiveTimeoutError,
    InternalError,
    InvalidArgumentError,
    MismatchError,
    OutOfMemoryError,
    PeerLostError,
    SystemCallError,
    UnsupportedError,
)

if _typing.TYPE_CHECKING:
    from collectives.catalogue import (
        Algorithm,
        Proof,
        Schedule,
        Segment,
        Step,
        algorithms,
        schedule,
        verify,
    )
    from collectives.communicator import Communicator
    from collectives.compression.codec import Codec, codec
    from collectives.compression.fp8 import FP8
    from collectives.compression.topk import TopK
    from collectives.default import init
    from collectives.drawing import draw
    from collectives.drop_in import (
        allgather,
        allgatherv,
        allreduce,
        alltoall,
        alltoallv,
        barrier,
        broadcast,
        exact_sum,
        exscan,
        gather,
        gatherv,
        reduce,
        reduce_scatter,
        reduce_scatterv,
        scan,
        scatter,
        scatterv,
    )
    from collectives.drop_in_choice import force
    from collectives.drop_in_messages import iprobe, irecv, isend, probe, recv, send, sendrecv
    from collectives.gpu_memory import DeviceArray
    from collectives.gpu_streams import on_stream
    from collectives.gpus import Device, Devices, devices
    from collectives.groups import Mesh
    from collectives.last import LastCall
    from collectives.operations import Operation, op
    from collectives.own import SELF, OwnAlgorithm, ScheduleBuilder, algorithm
    from collectives.packed import Pack, SpanningTree, pack
    from collectives.pending import Pending
    from collectives.persistent import PersistentCall, PersistentCalls
    from collectives.preloading import preload_nccl
    from collectives.products import Product, product
    from collectives.request import ANY_SOURCE, ANY_TAG, Request, Status
    from collectives.simulation import Moment, Simulation, simulate
    from collectives.sparse.algorithms import SparseAlgorithm, sparse_algorithms
    from collectives.sparse.compression import QSGD
    from collectives.sparse.plan import SparsePlan
    from collectives.sparse.vector import Sparse
    from collectives.start import local
    from collectives.topology import Topology
    from collectives.tori import torus
    from collectives.tracing import Trace, trace

# Where the names are. They are loaded when they are first asked for: collrun and collbench need few
# of them, and no NumPy, whose import takes three quarters of the time of all. None of these
# modules may have the name of one of the names: whoever imported it would put it in that place.
# Exceptions are there at once: they are caught where nothing can be loaded any more.
_NAMES = {
    "collectives.catalogue": "Algorithm Proof Schedule Segment Step algorithms schedule verify",
    "collectives.communicator": "Communicator",
    "collectives.compression.codec": "Codec codec",
    "collectives.compression.fp8": "FP8",
    "collectives.compression.topk": "TopK",
    "collectives.default": "init",
    "collectives.drawing": "draw",
    "collectives.drop_in": (
        "allgather allgatherv allreduce alltoall alltoallv barrier broadcast exact_sum exscan "
        "gather gatherv reduce reduce_scatter reduce_scatterv scan scatter scatterv"
    ),
    "collectives.drop_in_choice": "force",
    "collectives.drop_in_messages": "iprobe irecv isend probe recv send sendrecv",
    "collectives.gpu_memory": "DeviceArray",
    "collectives.gpu_streams": "on_stream",
    "collectives.gpus": "Device Devices devices",
    "collectives.groups": "Mesh",
    "collectives.last": "LastCall",
    "collectives.operations": "Operation op",
    "collectives.own": "OwnAlgorithm SELF ScheduleBuilder algorithm",
    "collectives.packed": "Pack SpanningTree pack",
    "collectives.pending": "Pending",
    "collectives.persistent": "PersistentCall PersistentCalls",
    "collectives.preloading": "preload_nccl",
    "collectives.products": "Product product",
    "collectives.request": "ANY_SOURCE ANY_TAG Request Status",
    "collectives.simulation": "Moment Simulation simulate",
    "collectives.sparse.algorithms": "SparseAlgorithm sparse_algorithms",
    "collectives.sparse.compression": "QSGD",
    "collectives.sparse.plan": "SparsePlan",
    "collectives.sparse.vector": "Sparse",
    "collectives.start": "local",
    "collectives.topology": "Topology",
    "collectives.tori": "torus",
    "collectives.tracing": "Trace trace",
}
_LATE = {name: module for module, names in _NAMES.items() for name in names.split()}

__version__ = _text(_lib.coll_version())

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "FP8",
    "QSGD",
    "SELF",
    "AbortedError",
    "Algorithm",
    "BootstrapError",
    "ClosedError",
    "Codec",
    "CollectiveError",
    "CollectiveTimeoutError",
    "Communicator",
    "Device",
    "DeviceArray",
    "Devices",
    "InternalError",
    "InvalidArgumentError",
    "LastCall",
    "Mesh",
    "MismatchError",
    "Moment",
    "Operation",
    "OutOfMemoryError",
    "OwnAlgorithm",
    "Pack",
    "PeerLostError",
    "Pending",
    "PersistentCall",
    "PersistentCalls",
    "Product",
    "Proof",
    "Request",
    "Schedule",
    "ScheduleBuilder",
    "Segment",
    "Simulation",
    "SpanningTree",
    "Sparse",
    "SparseAlgorithm",
    "SparsePlan",
    "Status",
    "Step",
    "SystemCallError",
    "TopK",
    "Topology",
    "Trace",
    "UnsupportedError",
    "__version__",
    "algorithm",
    "algorithms",
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "barrier",
    "broadcast",
    "codec",
    "devices",
    "draw",
    "exact_sum",
    "exscan",
    "force",
    "gather",
    "gatherv",
    "init",
    "iprobe",
    "irecv",
    "isend",
    "local",
    "on_stream",
    "op",
    "pack",
    "preload_nccl",
    "probe",
    "product",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatterv",
    "scan",
    "scatter",
    "scatterv",
    "schedule",
    "send",
    "sendrecv",
    "simulate",
    "sparse_algorithms",
    "torus",
    "trace",
    "verify",
]


# A process that is forked while another thread loads would wait for that thread, which it has not.
_loading = _RLock()
_os.register_at_fork(
    before=_loading.acquire,
    after_in_parent=_loading.release,
    after_in_child=_loading.release,
)

if not _typing.TYPE_CHECKING:  # or type checkers would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with _loading:
            value = getattr(_import_module(_LATE[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
