# SPDX-License-Identifier: Apache-2.0
"""The first program: add up arrays of all ranks.

Run: collrun -n 4 examples/allreduce.py
"""

import numpy as np

import collectives as cl

comm = cl.init()
x = np.full(3, comm.rank, np.float32)
cl.allreduce(x)  # in place
print(f"rank {comm.rank} of {comm.size}: {x}")
