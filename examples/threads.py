# SPDX-License-Identifier: Apache-2.0
"""Ranks as threads of one process: no launcher, and each reads the others' arrays directly.

Run: python examples/threads.py
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import collectives as cl


def work(comm: cl.Communicator) -> float:
    """Estimate pi: each rank integrates its share of the quarter circle."""
    steps = 1_000_000
    x = (np.arange(comm.rank, steps, comm.size) + 0.5) / steps
    share = np.array([np.sum(4 / (1 + x * x)) / steps])
    return float(comm.allreduce(share)[0])


comms = cl.local(4)
with ThreadPoolExecutor(4) as pool:
    for comm, pi in zip(comms, pool.map(work, comms), strict=True):
        print(f"rank {comm.rank}: {pi:.10f}")
