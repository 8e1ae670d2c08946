# SPDX-License-Identifier: Apache-2.0
"""Each collective once, on numbers small enough to follow by eye.

Run: collrun -n 3 examples/all_kinds.py
"""

import numpy as np

import collectives as cl

comm = cl.init()
rank, p = comm.rank, comm.size


def show(title: str, value: object) -> None:
    """Print one line per rank, in the order of ranks."""
    for turn in range(p):
        comm.barrier()
        if turn == rank:
            print(f"{title:14} rank {rank}: {value}", flush=True)


mine = np.arange(p) + 10 * rank
show("input", mine)
show("allreduce", comm.allreduce(mine.copy()))
show("max", comm.allreduce(mine.copy(), op="max"))
show("reduce_scatter", comm.reduce_scatter(mine))
show("allgather", comm.allgather(mine))
show("allgatherv", comm.allgatherv(mine[:rank], list(range(p))))
show("broadcast", comm.broadcast(mine.copy(), root=1 % p))
show("reduce", comm.reduce(mine.copy(), root=0))
