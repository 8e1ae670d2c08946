# SPDX-License-Identifier: Apache-2.0
"""Collectives among the processes or threads of one machine: allreduce and its family.

::

    import numpy as np
    import collectives as cl

    comm = cl.init()                    # started by: collrun -n 4 program.py
    x = np.full(3, comm.rank, "float32")
    cl.allreduce(x)                     # in place: [6. 6. 6.] on every rank

Every algorithm is data: :func:`algorithms` lists them, :func:`verify` proves them,
:func:`schedule` and :func:`draw` show them.
"""

from collectives._ffi import lib as _lib
from collectives._ffi import text as _text
from collectives.algorithms import (
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
from collectives.default import (
    allgather,
    allgatherv,
    allreduce,
    barrier,
    broadcast,
    init,
    reduce,
    reduce_scatter,
)
from collectives.draw import draw
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
from collectives.start import local

__version__ = _text(_lib.coll_version())

__all__ = [
    "AbortedError",
    "Algorithm",
    "BootstrapError",
    "ClosedError",
    "CollectiveError",
    "CollectiveTimeoutError",
    "Communicator",
    "InternalError",
    "InvalidArgumentError",
    "MismatchError",
    "OutOfMemoryError",
    "PeerLostError",
    "Proof",
    "Schedule",
    "Segment",
    "Step",
    "SystemCallError",
    "UnsupportedError",
    "__version__",
    "algorithms",
    "allgather",
    "allgatherv",
    "allreduce",
    "barrier",
    "broadcast",
    "draw",
    "init",
    "local",
    "reduce",
    "reduce_scatter",
    "schedule",
    "verify",
]
