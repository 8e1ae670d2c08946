# SPDX-License-Identifier: Apache-2.0
"""What happens when ranks disagree or die: an error that says who and what, never a hang.

Run: collrun -n 3 examples/failures.py
"""

import os
import signal

import numpy as np

import collectives as cl

with cl.init() as comm:
    try:
        comm.allreduce(np.ones(4 if comm.rank == 1 else 5))
    except cl.MismatchError as error:
        print(error)

with cl.init() as comm:
    try:
        comm.reduce_scatter(np.ones(comm.size + 1))
    except cl.InvalidArgumentError as error:
        print(error)
    comm.barrier()  # nothing was sent: the communicator works on

comm = cl.init(timeout=20)
comm.barrier()
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.allreduce(np.ones(1000))
except cl.PeerLostError as error:
    print(f"{error} (rank at fault: {error.rank})")
